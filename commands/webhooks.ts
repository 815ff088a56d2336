import type { Command } from "commander";
import { inTransaction } from "../shared/database/transaction.ts";
import { readThreshold, setThreshold } from "../shared/webhooks/low-balance.ts";
import { listEvents, replayEvent } from "../shared/webhooks/webhook-events.ts";
import { readWebhook, removeWebhook } from "../shared/webhooks/webhooks.ts";
import { parseId, parseWholeNumber } from "./argument-parsers.ts";
import { parseMilsOrNone } from "./money.ts";
import { CommandRefused, refuseErased, requireOrganization } from "./refusals.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

const eventsDefault = 20;
const eventsMax = 10_000;

/** @param org the parent command of those about organizations. */
export function addWebhookCommands(program: Command, org: Command, run: RunCommand): void {
  org
    .command("low-balance")
    .description("show or set the balance below which an organization is notified, on its page and by its webhook")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--below <mils>", "the threshold, or none", parseMilsOrNone(program, 1))
    .action((orgId: string, { below }: { below?: number | "none" }) =>
      run((context) => threshold(context, orgId, below)),
    );
  const webhook = program
    .command("webhook")
    .description("webhooks that organizations set on their page, and the events sent to them");
  webhook
    .command("list")
    .description("show an organization's webhook without its secret, and its newest events, newest first")
    .argument("<org>", "the organization's id", parseId("org"))
    .option("--limit <n>", "how many events at most", parseWholeNumber(1, eventsMax), eventsDefault)
    .action((orgId: string, { limit }: { limit: number }) => run((context) => list(context, orgId, limit)));
  webhook
    .command("replay")
    .description("send an event again, under the same id")
    .argument("<event>", "the event's id", parseId("evt"))
    .action((eventId: string) => run((context) => replay(context, eventId)));
  webhook
    .command("remove")
    .description("remove an organization's webhook; waiting events are not sent")
    .argument("<org>", "the organization's id", parseId("org"))
    .action((orgId: string) => run((context) => remove(context, orgId)));
}

async function threshold(context: CommandContext, organizationId: string, below: number | "none" | undefined) {
  const { database, actor } = context;
  const { balanceMils } = await requireOrganization(database, organizationId);
  if (below !== undefined) {
    await inTransaction(database, async (transaction) => {
      await refuseErased(transaction, organizationId);
      await setThreshold(transaction, { actor, organizationId }, below === "none" ? null : below);
    });
  }
  const belowMils = await readThreshold(database, organizationId);
  return { orgId: organizationId, belowMils, balanceMils, isLow: belowMils !== null && balanceMils < belowMils };
}

async function list({ database }: CommandContext, organizationId: string, limit: number) {
  await requireOrganization(database, organizationId);
  const webhook = (await readWebhook(database, organizationId)) ?? null;
  const events = (await listEvents(database, organizationId, limit)).map(
    ({ organizationId: _organizationId, ...event }) => event,
  );
  return { orgId: organizationId, webhook, events };
}

async function replay({ database, actor }: CommandContext, eventId: string) {
  const replayed = await inTransaction(database, (transaction) => replayEvent(transaction, { actor }, eventId));
  if (!replayed) throw new CommandRefused(`There is no event ${eventId}. Events are deleted after 30 days.`);
  if (replayed === "no_webhook") throw new CommandRefused("The organization no longer has a webhook.");
  const { organizationId: orgId, ...event } = replayed;
  return { orgId, ...event };
}

async function remove({ database, actor }: CommandContext, organizationId: string) {
  await requireOrganization(database, organizationId);
  const removed = await inTransaction(database, (transaction) => removeWebhook(transaction, { actor, organizationId }));
  return { orgId: organizationId, removed };
}
