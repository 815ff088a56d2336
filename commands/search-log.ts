import type { Command } from "commander";
import { z } from "zod";
import { recordAudit } from "../shared/audit/audit.ts";
import { type HistoryEntry, readSearchEntries, readSearchOwner } from "../api/ledger/history.ts";
import { readSearchLedger } from "../api/ledger/ledger-pages.ts";
import { listOrganizationIds, showOrganization } from "../shared/organizations/organizations.ts";
import { type LoggedSearch, readSearches } from "../shared/search-log/read-search-log.ts";
import { parseId, parseRequestId, parseTime } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";
import type { Database } from "../shared/database/pool.ts";

const hourMs = 3_600_000;
const failuresSinceMs = 24 * hourMs;
const organizationsPerPage = 500;

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

/** The searches of one kind and reason that cost nothing in the end. */
interface FailureCount {
  reason: string;
  /** Whether the search was never charged, or its charge was given back. */
  outcome: "not charged" | "credited back";
  searches: number;
  organizations: number;
  lastRequestId: string;
}

const countRow = z.object({
  outcome: z.enum(["not charged", "credited back"]),
  reason: z.string(),
  searches: z.number(),
  organizations: z.number(),
  last_request_id: z.string(),
});

/**
 * Counts the searches that were refunded or whose charge was reversed since a time, the most frequent reason first. It
 * reads no charges, and single refunds only of the first hour that is not whole; of that they are missing if it is 30 days ago.
 * @param organizationId only of this organization; undefined for all, which are read page by page.
 */
async function countFailures(
  database: Database,
  { organizationId, since }: { organizationId: string | undefined; since: Date },
): Promise<FailureCount[]> {
  const counts = new Map<string, FailureCount>();
  const pages = organizationId === undefined ? pagesOfAll(database) : [[organizationId]];
  for await (const ids of pages) await countPage(database, { ids, since }, counts);
  return [...counts.values()].toSorted((one, other) => other.searches - one.searches);
}

async function* pagesOfAll(database: Database): AsyncGenerator<string[]> {
  for (let after: string | undefined = ""; after !== undefined; ) {
    const ids = await listOrganizationIds(database, after, organizationsPerPage);
    yield ids;
    after = ids.length < organizationsPerPage ? undefined : ids.at(-1);
  }
}

async function countPage(
  database: Database,
  { ids, since }: { ids: string[]; since: Date },
  counts: Map<string, FailureCount>,
): Promise<void> {
  const { rows } = await database.query(
    `with failed as (
       select o.id, 'credited back' as outcome, l.reason, 1 as searches, l.request_id
       from unnest($1::text[]) as o (id)
       cross join lateral (select first_version_since(o.id, $2) as version offset 0) first
       cross join lateral (
         select reason, request_id from ledger_entries
         where organization_id = o.id and kind = 'reversal' and kind <> 'charge' and version >= first.version) l
       union all
       select organization_id, 'not charged', reason, 1, request_id from refunds
       where organization_id = any ($1) and created_at >= $2 and created_at < $3
       union all
       select organization_id, 'not charged', reason, searches, last_request_id from refund_counts
       where organization_id = any ($1) and hour >= $3
     )
     select outcome, reason, sum(searches)::bigint as searches, count(distinct id) as organizations, max(request_id) as last_request_id
     from failed group by outcome, reason`,
    [ids, since, new Date(Math.ceil(since.getTime() / hourMs) * hourMs)],
  );
  for (const row of rows.map((read) => countRow.parse(read))) {
    const { outcome, reason, searches, organizations, last_request_id: lastRequestId } = row;
    const known = counts.get(`${outcome} ${reason}`);
    counts.set(`${outcome} ${reason}`, {
      reason,
      outcome,
      searches: searches + (known?.searches ?? 0),
      organizations: organizations + (known?.organizations ?? 0),
      lastRequestId: known && known.lastRequestId > lastRequestId ? known.lastRequestId : lastRequestId,
    });
  }
}
