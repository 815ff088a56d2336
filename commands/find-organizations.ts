import type { Command } from "commander";
import { findOrganizations, type ListedOrganization, listOrganizations } from "./organizations/find-organizations.ts";
import { parseId, parseText, parseWholeNumber } from "./argument-parsers.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

const listedDefault = 100;
const listedMax = 10_000;
const textLengthMax = 200;

/** @param org the parent command. */
export function addFindCommands(org: Command, run: RunCommand): void {
  org
    .command("list")
    .description("list the organizations, newest first")
    .option("--before <org>", "only organizations older than this one, for the next page", parseId("org"))
    .option("--limit <n>", "how many at most", parseWholeNumber(1, listedMax), listedDefault)
    .action(({ before, limit }: { before?: string; limit: number }) =>
      run((context) => list(context, { before, limit })),
    );
  org
    .command("find")
    .description("find organizations by id or by part of their name, in upper or lower case")
    .argument("<text>", "part of the name, or the id", parseText(textLengthMax))
    .option("--limit <n>", "how many at most", parseWholeNumber(1, listedMax), listedDefault)
    .action((text: string, { limit }: { limit: number }) =>
      run((context) => find(context, { text: text.trim(), limit })),
    );
}

async function list({ database, warn }: CommandContext, wanted: { before: string | undefined; limit: number }) {
  const [organizations, isCut] = cutTo(wanted.limit, await listOrganizations(database, oneMore(wanted)));
  const last = organizations.at(-1);
  if (isCut && last) warn(`There are more. For the next page: --before ${last.orgId}`);
  return { organizations };
}

async function find({ database, warn }: CommandContext, wanted: { text: string; limit: number }) {
  const [organizations, isCut] = cutTo(wanted.limit, await findOrganizations(database, oneMore(wanted)));
  if (isCut) warn("There are more. Use a longer part of the name, or --limit.");
  return { organizations };
}

const oneMore = <Wanted extends { limit: number }>(wanted: Wanted) => ({ ...wanted, limit: wanted.limit + 1 });

const cutTo = (limit: number, organizations: ListedOrganization[]) =>
  [organizations.slice(0, limit), organizations.length > limit] as const;
