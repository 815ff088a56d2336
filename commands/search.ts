import type { Command } from "commander";
import { z } from "zod";
import { recordAudit } from "../shared/audit/audit.ts";
import type { Database } from "../shared/database/pool.ts";
import { rowOf } from "../shared/database/row.ts";
import { timeOfId } from "../shared/ids.ts";
import { pagesOfOrganizations } from "../shared/organizations/organizations.ts";
import { type LoggedSearch, readSearches } from "../shared/search-log/read-search-log.ts";
import { findRefused } from "../shared/search-log/refused-searches.ts";
import { type HistoryEntry, readSearchEntries, readSearchOwner } from "../api/ledger/history.ts";
import { readSearchLedger } from "../api/ledger/ledger-pages.ts";
import { type NoCall, type RawAnswer, readRawAnswers } from "../worker/raw-answers/raw-answers.ts";
import { parseId, parseRequestId, parseTime, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused, requireOrganization, requireRedis } from "./refusals.ts";
import { type CommandContext, exitCodes, type RunCommand } from "./run-command.ts";

const pageMax = 1_000;
const hourMs = 3_600_000;
const failuresSinceMs = 24 * hourMs;
const organizationsPerPage = 500;
/** The clocks of the machines may differ, and the answers expire some time after the search began. */
const expiryMarginMs = 5 * 60_000;

export function addSearchCommands(program: Command, run: RunCommand): void {
  const search = program.command("search").description("searches: queries, failures, and the providers' answers");
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
        if (org !== undefined) await requireOrganization(database, org);
        return { since, failures: await countFailures(database, { organizationId: org, since }) };
      }),
    );
  search
    .command("raw")
    .argument("<request>", "the id of the search, as in requestId and X-Request-Id", parseRequestId)
    .summary("print the providers' raw answers to a search; needs RAW_ANSWER_MINUTES")
    .description(
      "Print the providers' raw answers to a search, by page: status, outcome and body, without our keys. The workers keep them for RAW_ANSWER_MINUTES.",
    )
    .option("--page <n>", "only the calls for this page", parseWholeNumber(1, pageMax))
    .option("--body", "print only the raw bodies, each on its own lines")
    .addHelpText(
      "after",
      "\nA search that shared the answer of another one, or got it from the cache, made no call. Then callsOf names the search that made the calls, and its answers are printed.\nExample: npm run --silent admin -- search raw req_01m7xy02p3f9xsnhttx3p2c6sn --page 1 --body | jq .",
    )
    .action((requestId: string, options: RawOptions) =>
      run((context) => readRaw(context, requestId, options), {
        exitCode: ({ answers }) => (options.body && answers.every(({ body }) => body === null) ? exitCodes.refused : 0),
        toData: options.body && toBodies,
      }),
    );
}

async function showSearch(context: CommandContext, requestId: string) {
  const { database, actor } = context;
  const orgId = await readSearchOwner(database, requestId);
  const [decided] = orgId === undefined ? [] : await readSearchEntries(database, orgId, [requestId]);
  if (orgId === undefined || decided === undefined) return showRefused(context, requestId);
  const logged = (await readSearches(database, orgId, [requestId])).get(requestId);
  if (!logged) context.warn(whyNotLogged(context));
  await recordAudit(database, { actor, action: "search.shown", organizationId: orgId, subject: requestId });
  const entries = await readSearchLedger(database, requestId);
  return { requestId, orgId, ...outcomeOf(decided), ...describe(logged), entries, calls: logged?.work?.calls ?? [] };
}

async function showRefused({ database, actor }: CommandContext, requestId: string) {
  const refusal = await findRefused(database, requestId);
  if (!refusal)
    throw new CommandRefused(
      `There is no search ${requestId} that ended. It still runs, was refused before it ran and its row was only counted or is older than seven days, ended without a charge more than 30 days ago, or does not exist.`,
    );
  const { organizationId: orgId, at: arrivedAt, tokenId, tokenName, code, reason, message, query, refusals } = refusal;
  await recordAudit(database, { actor, action: "search.shown", organizationId: orgId, subject: requestId });
  return {
    requestId,
    orgId,
    outcome: "refused",
    code,
    reason,
    message,
    refusals,
    arrivedAt,
    tokenId,
    tokenName,
    ...query,
  };
}

function outcomeOf(entry: HistoryEntry) {
  const reason = "reason" in entry ? entry.reason : null;
  return { outcome: entry.outcome, reason, chargedMils: entry.outcome === "charged" ? entry.chargedMils : 0 };
}

/** What only the search log knows; null where it has no row. */
function describe(logged: LoggedSearch | undefined) {
  const { query, work, token } = logged ?? {};
  return {
    arrivedAt: logged?.at ?? null,
    durationMs: logged?.durationMs ?? null,
    keyword: query?.keyword ?? null,
    location: query?.location ?? null,
    language: query?.language ?? null,
    device: query?.device ?? null,
    depth: query?.depth ?? null,
    targetDomain: query?.targetDomain ?? null,
    types: query?.types ?? null,
    format: query ? (query.format ?? "full") : null,
    tokenId: token?.tokenId ?? null,
    tokenName: token?.name ?? null,
    hasKey: logged ? logged.keyHash !== null : null,
    answerFrom: work?.source ?? null,
    provider: work?.provider ?? null,
    costMicroUsd: work ? work.calls.reduce((sum, call) => sum + call.costMicroUsd, 0) : null,
  };
}

function whyNotLogged({ config }: Pick<CommandContext, "config">): string {
  const days = config.SEARCH_LOG_DAYS;
  if (days === 0) return "SEARCH_LOG_DAYS is 0, so the search log is off.";
  return `The search log has no row for it. The search is older than ${days} days, its row is waiting or was lost (search_log_rows_total), or SEARCH_LOG_DAYS was 0.`;
}

const countRow = rowOf({
  /** Whether the search was never charged, or its charge was given back. */
  outcome: z.enum(["not charged", "credited back"]),
  reason: z.string(),
  searches: z.number(),
  organizations: z.number(),
  lastRequestId: z.string(),
});
/** The searches of one kind and reason that cost nothing in the end. */
type FailureCount = z.infer<typeof countRow>;

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
  const pages =
    organizationId === undefined ? pagesOfOrganizations(database, organizationsPerPage) : [[organizationId]];
  for await (const ids of pages) await countPage(database, { ids, since }, counts);
  return [...counts.values()].toSorted((one, other) => other.searches - one.searches);
}

async function countPage(
  database: Database,
  { ids, since }: { ids: string[]; since: Date },
  counts: Map<string, FailureCount>,
): Promise<void> {
  // A reversal is no charge anyway: `kind <> 'charge'` selects the partial index `not_charges_by_organization`. With `offset 0` it is
  // read for each organization; Postgres may otherwise read the reversals of all for each page.
  const { rows } = await database.query(
    `with failed as (
       select o.id, 'credited back' as outcome, l.reason, 1 as searches, l.request_id
       from unnest($1::text[]) as o (id)
       cross join lateral (select first_version_since(o.id, $2) as version offset 0) first
       cross join lateral (
         select reason, request_id from ledger_entries
         where organization_id = o.id and kind = 'reversal' and kind <> 'charge' and version >= first.version offset 0) l
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
    const name = `${row.outcome} ${row.reason}`;
    const known = counts.get(name);
    counts.set(name, {
      ...row,
      searches: row.searches + (known?.searches ?? 0),
      organizations: row.organizations + (known?.organizations ?? 0),
      lastRequestId: known && known.lastRequestId > row.lastRequestId ? known.lastRequestId : row.lastRequestId,
    });
  }
}

/** `callsOf` is another search than `requestId` if that one made no call of its own. */
type RawSearch = { requestId: string; from: NoCall["from"]; callsOf: string; answers: RawAnswer[] };
type RawOptions = { page?: number; body?: true };

async function readRaw(context: CommandContext, requestId: string, { page, body }: RawOptions): Promise<RawSearch> {
  await requireRedis(context);
  const search = await readSearch(context, requestId);
  const answers = search.answers.filter((answer) => page === undefined || answer.page === page);
  if (answers.length === 0) throw new CommandRefused(`${search.callsOf} made no call for page ${page}.`);
  if (body) warnOfMissing(context, search, answers);
  await recordReading(context, search);
  return { ...search, answers };
}

/** Recorded before anything is shown. A search that was answered a moment ago may have no organization in the ledger yet. */
async function recordReading({ database, actor }: CommandContext, { requestId, callsOf }: RawSearch): Promise<void> {
  const organizationId = await readSearchOwner(database, requestId);
  const subject = requestId;
  await recordAudit(database, { actor, action: "search.raw_read", organizationId, subject, after: { callsOf } });
}

/** The calls of a search, or of the search whose answer it shared. @throws {CommandRefused} if there is none. */
async function readSearch(context: CommandContext, requestId: string): Promise<RawSearch> {
  const kept = await readRawAnswers(context.redis, requestId);
  if (!kept) throw new CommandRefused(await whyNothing(context, requestId));
  const { answers, noCall } = kept;
  if (answers.length > 0 || !noCall) return { requestId, from: "provider", callsOf: requestId, answers };
  const { from, callsOf } = noCall;
  if (from === "provider") throw new CommandRefused(`${requestId} ended before a provider was called.`);
  if (callsOf === null) throw new CommandRefused(`${requestId} made no call: ${unknownSource[from]}.`);
  const shared = await readRawAnswers(context.redis, callsOf);
  if (shared && shared.answers.length > 0) return { requestId, from, callsOf, answers: shared.answers };
  throw new CommandRefused(
    `${requestId} made no call. It shared the answer of ${callsOf}, whose raw answers have expired.`,
  );
}

/** Of a search that made no call, if it is unknown which search did. */
const unknownSource = {
  kept: "its answer is one that the organization had paid for before and keeps",
  cache: "its answer came from the cache, and the raw answers of the cached search were not kept",
  shared:
    "it shared the answer of an identical search whose raw answers were not kept, or waited until its deadline or until its caller disconnected",
};

/** As much as can be known of a search without raw answers. */
async function whyNothing({ config, database }: CommandContext, requestId: string): Promise<string> {
  const minutes = config.RAW_ANSWER_MINUTES;
  const nothing = `No raw answers of ${requestId} are kept`;
  const beganAt = timeOfId(requestId);
  const isOld = Date.now() - beganAt.getTime() > minutes * 60_000 + expiryMarginMs;
  const isDecided = (await readSearchOwner(database, requestId)) !== undefined;
  if (!isDecided && isOld) return `${nothing}: the search does not exist, or was refused before it ran.`;
  if (minutes === 0)
    return `${nothing}: RAW_ANSWER_MINUTES is 0, the default. Set it for the workers, and for this command, before the search.`;
  if (!isDecided) return `${nothing}: the search still runs, was refused before it ran, or does not exist.`;
  if (isOld)
    return `${nothing}: they have expired. The search began at ${beganAt.toISOString()}, and RAW_ANSWER_MINUTES is ${minutes}.`;
  return `${nothing}: they have expired, RAW_ANSWER_MINUTES was 0 in the worker, or Redis did not accept them (raw_answers_total).`;
}

function warnOfMissing({ warn }: CommandContext, { requestId, callsOf }: RawSearch, answers: readonly RawAnswer[]) {
  if (callsOf !== requestId) warn(`${requestId} made no call: these are the answers to ${callsOf}.`);
  for (const { provider, page, outcome, body, bodyCharacters } of answers) {
    if (body === null) warn(`${provider}, page ${page}: no answer came (${outcome}).`);
    else if (body.length < bodyCharacters)
      warn(`${provider}, page ${page}: the first ${body.length} of ${bodyCharacters} characters.`);
  }
}

/** Each body ends with a line break, so that a reader of JSON can tell them apart. */
function toBodies({ answers }: RawSearch): string {
  return answers.flatMap(({ body }) => (body === null ? [] : [body.endsWith("\n") ? body : `${body}\n`])).join("");
}
