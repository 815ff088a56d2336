import type { Command } from "commander";
import { recordAudit } from "../shared/audit/audit.ts";
import { countFailures } from "./ledger/failed-searches.ts";
import { type HistoryEntry, readSearchEntries, readSearchOwner } from "../api/ledger/history.ts";
import { readSearchLedger } from "../api/ledger/ledger-pages.ts";
import { showOrganization } from "../shared/organizations/organizations.ts";
import type { LoggedSearch } from "../shared/search-log/logged-search.ts";
import { readSearches } from "../shared/search-log/read-search-log.ts";
import { parseId, parseRequestId, parseTime } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";

const failuresSinceMs = 24 * 60 * 60_000;

/** @param search the parent command. */
export function addSearchLogCommands(search: Command, run: RunCommand): void {
  search
    .command("show")
    .description(
      "show a search: its query, token and outcome, its ledger entries, and the provider calls with their cost",
    )
    .argument("<request>", "the id of the search, as in requestId and X-Request-Id", parseRequestId)
    .action((requestId: string) => run((context) => showSearch(context, requestId)));
  search
    .command("failures")
    .description("count the searches that were not charged or were credited back, by reason")
    .option("--org <org>", "only of this organization", parseId("org"))
    .option("--since <time>", "only since this time, such as 2026-11-22 (default: 24 hours ago)", parseTime)
    .action(({ org, since = new Date(Date.now() - failuresSinceMs) }: { org?: string; since?: Date }) =>
      run(async ({ database }) => {
        if (org !== undefined && !(await showOrganization(database, org)))
          throw new CommandRefused(`There is no organization ${org}.`);
        return { since, failures: await countFailures(database, { organizationId: org, since }) };
      }),
    );
}

async function showSearch(context: CommandContext, requestId: string) {
  const { database, actor } = context;
  const orgId = await readSearchOwner(database, requestId);
  const [decided] = orgId === undefined ? [] : await readSearchEntries(database, orgId, [requestId]);
  if (orgId === undefined || decided === undefined)
    throw new CommandRefused(
      `There is no search ${requestId} that ended. It still runs, was refused before it ran, ended without a charge more than 30 days ago, or does not exist.`,
    );
  const logged = (await readSearches(database, orgId, [requestId])).get(requestId);
  if (!logged) context.warn(whyNotLogged(context));
  await recordAudit(database, actor, { action: "search.shown", organizationId: orgId, subject: requestId });
  const entries = await readSearchLedger(database, requestId);
  return { requestId, orgId, ...outcomeOf(decided), ...describe(logged), entries, calls: logged?.work?.calls ?? [] };
}

function outcomeOf(entry: HistoryEntry) {
  const reason = "reason" in entry ? entry.reason : null;
  return { outcome: entry.outcome, reason, chargedMils: entry.outcome === "charged" ? entry.chargedMils : 0 };
}

/** What only the search log knows; null where it has no row. */
function describe(logged: LoggedSearch | undefined) {
  const { query, work } = logged ?? {};
  const { keyword = null, location = null, language = null, device = null, depth = null } = query ?? {};
  const asked = { keyword, location, language, device, depth };
  const { targetDomain = null, types = null, format = logged ? "full" : null } = query ?? {};
  const shaped = { targetDomain, types, format };
  const { tokenId = null, name: tokenName = null } = logged?.token ?? {};
  const costMicroUsd = work ? work.calls.reduce((sum, call) => sum + call.costMicroUsd, 0) : null;
  return {
    arrivedAt: logged?.at ?? null,
    durationMs: logged?.durationMs ?? null,
    ...asked,
    ...shaped,
    tokenId,
    tokenName,
    hasKey: logged ? logged.keyHash !== null : null,
    answerFrom: work?.source ?? null,
    provider: work?.provider ?? null,
    costMicroUsd,
  };
}

function whyNotLogged({ config }: Pick<CommandContext, "config">): string {
  const days = config.SEARCH_LOG_DAYS;
  if (days === 0) return "SEARCH_LOG_DAYS is 0, so the search log is off.";
  return `The search log has no row for it. The search is older than ${days} days, its row is waiting or was lost (search_log_rows_total), or SEARCH_LOG_DAYS was 0.`;
}
