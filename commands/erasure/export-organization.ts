import type { Redis } from "ioredis";
import { readAuditPage } from "../../shared/audit/audit.ts";
import { readLedgerPage, readRefundsPage } from "../../api/ledger/ledger-pages.ts";
import { readKeptAnswersPage, readKeptDays } from "../../shared/credits/kept-answers.ts";
import { readAnswersPage } from "../../shared/credits/stored-answers.ts";
import type { Database } from "../../shared/database/pool.ts";
import { showOrganization } from "../../shared/organizations/organizations.ts";
import { readSearchLogPage } from "../../shared/search-log/read-search-log.ts";
import { type LoggedRefusal, readRefused } from "../../shared/search-log/refused-searches.ts";
import { readThreshold } from "../../shared/webhooks/low-balance.ts";
import { listEvents } from "../../shared/webhooks/webhook-events.ts";
import { readWebhook } from "../../shared/webhooks/webhooks.ts";
import { readAutoTopup } from "../../api/auto-topups/auto-topup.ts";
import { listPayments } from "../../api/auto-topups/payments.ts";
import { listSessions, sessionKeyOf } from "../../api/billing/session/session-keys.ts";
import { readHistory } from "../../api/ledger/history.ts";
import { readOwnLimits } from "../../api/organizations/limits.ts";
import { listTokens } from "../../api/tokens/tokens.ts";
import { readRawAnswers } from "../../worker/raw-answers/raw-answers.ts";

const itemsPerPage = 1_000;
/** Above what an organization can cause in 30 days: 100 a day of each of three types. */
const eventsMax = 10_000;
/** An answer may have some megabytes. */
const answersPerPage = 10;
/** Raw answers are kept for an hour at most, from the first call of a search, which ends minutes before its decision at most. */
const recentMs = 65 * 60_000;

/** One thing that the service has about an organization. `kind` says what it is; dates become ISO 8601 texts in JSON. */
type ExportedLine = { kind: string } & Record<string, unknown>;

/**
 * What the service has about an organization, but for hashes, the secret of its webhook, and what docs/operating/retention.md
 * leaves out. It is read page by page while the service runs, so what changes meanwhile may be there or not.
 */
export async function* exportOrganization(
  { database, redis }: { database: Database; redis: Redis },
  organizationId: string,
): AsyncGenerator<ExportedLine> {
  yield { kind: "organization", ...(await showOrganization(database, organizationId)) };
  yield { kind: "spending_limits", ...(await readOwnLimits(database, "organization", organizationId)) };
  yield { kind: "kept_answer_days", days: await readKeptDays(database, organizationId) };
  for (const token of await listTokens(database, organizationId)) yield { kind: "token", ...token };
  const thresholdMils = await readThreshold(database, organizationId);
  if (thresholdMils !== null) yield { kind: "low_balance_threshold", thresholdMils };
  const webhook = await readWebhook(database, organizationId);
  if (webhook) yield { kind: "webhook", ...webhook };
  for (const event of await listEvents(database, organizationId, eventsMax)) yield { kind: "webhook_event", ...event };
  const autoTopup = await readAutoTopup(database, organizationId);
  if (autoTopup) yield { kind: "auto_topup", ...autoTopup };

  const all = <Item, Place>(
    read: ReadPage<Item, Place>,
    first: Place,
    placeOf: (item: Item) => Place,
    limit?: number,
  ) => readAll((page) => read(database, organizationId, page), first, placeOf, limit);
  for await (const payment of all(listPayments, undefined, ({ paymentId }) => paymentId))
    yield { kind: "auto_topup_payment", ...payment };
  for await (const entry of all(readAuditPage, 0, ({ id }) => id)) yield { kind: "audit_entry", ...entry };
  for await (const { kind: entry, ...fields } of all(readLedgerPage, 0, ({ version }) => version))
    yield { kind: "ledger_entry", entry, ...fields };
  // Of the last 30 days.
  for await (const { number: _order, ...refund } of all(readRefundsPage, 0, ({ number }) => number))
    yield { kind: "refund", ...refund };
  // What our providers did for a search, and what that cost, is not the organization's.
  for await (const { token, keyHash: _hash, work: _work, ...search } of all(readSearchLogPage, undefined, (row) => row))
    yield { kind: "search", ...search, tokenId: token.tokenId };
  const refusedPage: ReadPage<LoggedRefusal, string | undefined> = (from, id, { after: before, limit }) =>
    readRefused(from, id, { before, limit });
  for await (const { tokenName: _name, tokenLast4: _last4, organizationId: _own, ...refusal } of all(
    refusedPage,
    undefined,
    ({ requestId }) => requestId,
  ))
    yield { kind: "refused_search", ...refusal };

  for (const { idHash, endsAt } of await listSessions(redis, organizationId)) {
    const idleMs = await redis.pttl(sessionKeyOf(idHash));
    if (idleMs > 0) yield { kind: "session", endsAt, endsWhenIdleAt: new Date(Date.now() + idleMs) };
  }
  for await (const { requestId, body } of all(readAnswersPage, undefined, (answer) => answer, answersPerPage))
    yield { kind: "answer", requestId, body: JSON.parse(body.toString()) };
  for await (const { at: _at, provider: _provider, fetchedAtMs, ...answer } of all(
    readKeptAnswersPage,
    undefined,
    (row) => row,
    answersPerPage,
  ))
    yield { kind: "kept_answer", fetchedAt: new Date(fetchedAtMs), ...answer };
  for await (const requestId of listRecentSearches(database, organizationId)) {
    const kept = await readRawAnswers(redis, requestId);
    for (const answer of kept?.answers ?? []) yield { kind: "raw_answer", requestId, ...answer };
  }
}

type ReadPage<Item, Place> = (
  database: Database,
  organizationId: string,
  page: { after: Place; limit: number },
) => Promise<Item[]>;

async function* readAll<Item, Place>(
  read: (page: { after: Place; limit: number }) => Promise<Item[]>,
  first: Place,
  placeOf: (item: Item) => Place,
  limit = itemsPerPage,
): AsyncGenerator<Item> {
  for (let after = first; ; ) {
    const page = await read({ after, limit });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return;
    after = placeOf(last);
  }
}

/** The ids of an organization's searches that may have raw answers, newest first. */
export async function* listRecentSearches(database: Database, organizationId: string): AsyncGenerator<string> {
  for (let before: string | undefined; ; ) {
    const page = await readHistory(database, organizationId, { filter: "all", before, limit: itemsPerPage });
    for (const entry of page.entries) {
      if (Date.now() - entry.at.getTime() > recentMs) return;
      if ("requestId" in entry) yield entry.requestId;
    }
    if (page.older === undefined) return;
    before = page.older;
  }
}
