import type { Command } from "commander";
import { recordAudit } from "../shared/audit/audit.ts";
import type { Config } from "../shared/config.ts";
import { readStoredLists, type RecordList, removeList, type StoredList } from "../worker/locations/stored-lists.ts";
import type { Provider } from "../worker/providers/provider.ts";
import { CommandRefused } from "./refusals.ts";
import { type CommandContext, exitCodes, type RunCommand } from "./run-command.ts";

const msPerDay = 86_400_000;

export function addLocationCommands(program: Command, run: RunCommand): void {
  const locations = program
    .command("locations")
    .description("locations: the providers' own lists of supported cities and regions");
  locations
    .command("refresh")
    .description(
      "fetch and store the list of each provider of SERP_PROVIDERS that publishes one; exit 1 if one was not replaced",
    )
    .option("--accept-shorter", "replace a list even if the new one is much shorter")
    .action(({ acceptShorter = false }: { acceptShorter?: boolean }) =>
      run((context) => refresh(context, acceptShorter), {
        exitCode: ({ failed }) => (failed.length > 0 ? exitCodes.refused : 0),
      }),
    );
  locations
    .command("list")
    .description("list the stored lists with their dates")
    .action(() => run(async ({ database }) => ({ lists: (await readStoredLists(database)).map(describe) })));
  locations
    .command("remove")
    .description("remove a stored list; the provider then gets cities and regions as callers wrote them")
    .argument("<provider>", "the provider's name")
    .action((provider: string) => run((context) => remove(context, provider)));
}

async function refresh(context: CommandContext, acceptShorter: boolean) {
  const { database, warn } = context;
  // Loaded on demand: the providers and their HTTP client would add to the start of every other command.
  const { listBytesMax, refreshList } = await import("../worker/locations/refresh-lists.ts");
  const { openProviderHttp } = await import("../worker/providers/policies/http.ts");
  const providers = await providersWithList(context.config);
  const http = openProviderHttp({ bodyBytesMax: listBytesMax });
  const [lists, failed]: [object[], object[]] = [[], []];
  try {
    // One after the other: each list takes some hundred megabytes while it is read.
    for (const provider of providers) {
      const onProgress = (step: string) => warn(`${provider.name}: ${step}`);
      const record = recorderOf(context, "locations.refreshed", provider.name);
      const refreshed = await refreshList(provider, { http, database, acceptShorter, onProgress, record });
      if ("problem" in refreshed) {
        failed.push({ provider: provider.name, problem: refreshed.problem });
        warn(`${provider.name} ${refreshed.problem}. The stored list was not changed.`);
      } else lists.push(describe(refreshed));
    }
  } finally {
    await http.close();
  }
  return { lists, failed };
}

/** @throws {CommandRefused} if there is none. */
async function providersWithList(config: Config) {
  const { openProviders } = await import("../worker/providers/registry.ts");
  const providers = openProviders(config).filter(publishesList);
  if (providers.length > 0) return providers;
  throw new CommandRefused("No provider of SERP_PROVIDERS publishes a list of its locations.");
}

function publishesList(provider: Provider): provider is Provider & Required<Pick<Provider, "locations">> {
  return provider.locations !== undefined;
}

async function remove(context: CommandContext, provider: string) {
  const record = recorderOf(context, "locations.removed", provider);
  if (!(await removeList(context.database, provider, record)))
    throw new CommandRefused(`There is no stored list of "${provider}".`);
  return { provider, removed: true };
}

/** Records a change of a list in its transaction. */
function recorderOf(
  { actor }: CommandContext,
  action: "locations.refreshed" | "locations.removed",
  provider: string,
): RecordList {
  return (transaction, { before, after }) =>
    recordAudit(transaction, actor, { action, subject: provider, before: valuesOf(before), after: valuesOf(after) });
}

const valuesOf = (list: StoredList | undefined) =>
  list ? { locations: list.locations, refreshedAt: list.refreshedAt } : null;

function describe({ provider, locations, refreshedAt }: StoredList) {
  const ageDays = Math.floor((Date.now() - refreshedAt.getTime()) / msPerDay);
  return { provider, locations, refreshedAt: refreshedAt.toISOString(), ageDays };
}
