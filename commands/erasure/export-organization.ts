import type { Redis } from "ioredis";
import { readAuditPage } from "../../shared/audit/audit.ts";
import { readAutoTopup } from "../../api/auto-topups/auto-topup.ts";
import { listPayments } from "../../api/auto-topups/payments.ts";
import { readLedgerPage, readRefundsPage } from "../../api/ledger/ledger-pages.ts";
import { readAnswersPage } from "../../shared/credits/stored-answers.ts";
import type { Database } from "../../shared/database/pool.ts";
import { showOrganization } from "../../shared/organizations/organizations.ts";
import { listSessions, sessionKeyOf } from "../../api/billing/session/session-keys.ts";
import { listTokens } from "../../api/tokens/tokens.ts";
import { readRawAnswers } from "../../worker/raw-answers/raw-answers.ts";
import { type LogPlace, readSearchLogPage } from "../../shared/search-log/read-search-log.ts";
import { readThreshold } from "../../shared/webhooks/low-balance.ts";
import { listEvents } from "../../shared/webhooks/webhook-events.ts";
import { readWebhook } from "../../shared/webhooks/webhooks.ts";
import { listRecentSearches } from "./recent-searches.ts";

const entriesPerPage = 1_000;
/** Above what an organization can cause in 30 days. */
const eventsMax = 4_000;
/** An answer may have some megabytes. */
const answersPerPage = 10;

/** One thing that the service has about an organization. `kind` says what it is; dates become ISO 8601 texts in JSON. */
export type ExportedLine = { kind: string } & Record<string, unknown>;

/**
 * Everything that the service has about an organization, without hashes of tokens, sessions and keys, and the secret of its webhook. It is read page by page
 * while the service runs, so what changes meanwhile may be there or not.
 */
export async function* exportOrganization(
  { database, redis }: { database: Database; redis: Redis },
  organizationId: string,
): AsyncGenerator<ExportedLine> {
  yield { kind: "organization", ...(await showOrganization(database, organizationId)) };
  for (const token of await listTokens(database, organizationId)) yield { kind: "token", ...token };
  yield* webhook(database, organizationId);
  yield* autoTopup(database, organizationId);
  yield* auditEntries(database, organizationId);
  yield* ledgerEntries(database, organizationId);
  yield* refunds(database, organizationId);
  yield* searches(database, organizationId);
  yield* sessions(redis, organizationId);
  yield* answers(database, organizationId);
  yield* rawAnswers({ database, redis }, organizationId);
}

/** Without its secret. An organization has at most some thousand events, which are deleted after 30 days. */
async function* webhook(database: Database, organizationId: string): AsyncGenerator<ExportedLine> {
  const thresholdMils = await readThreshold(database, organizationId);
  if (thresholdMils !== null) yield { kind: "low_balance_threshold", thresholdMils };
  const own = await readWebhook(database, organizationId);
  if (own) yield { kind: "webhook", ...own };
  for (const event of await listEvents(database, organizationId, eventsMax)) yield { kind: "webhook_event", ...event };
}

async function* autoTopup(database: Database, organizationId: string): AsyncGenerator<ExportedLine> {
  const settings = await readAutoTopup(database, organizationId);
  if (settings) yield { kind: "auto_topup", ...settings };
  for (let after = ""; ; ) {
    const page = await listPayments(database, organizationId, { after, limit: entriesPerPage });
    for (const payment of page) yield { kind: "auto_topup_payment", ...payment };
    if (page.length < entriesPerPage) return;
    after = page.at(-1)?.paymentId ?? after;
  }
}

async function* ledgerEntries(database: Database, organizationId: string): AsyncGenerator<ExportedLine> {
  for (let after = 0; ; ) {
    const page = await readLedgerPage(database, organizationId, { after, limit: entriesPerPage });
    for (const { kind: entry, ...fields } of page) yield { kind: "ledger_entry", entry, ...fields };
    if (page.length < entriesPerPage) return;
    after = page.at(-1)?.version ?? after;
  }
}

/** Of the last 30 days. */
async function* refunds(database: Database, organizationId: string): AsyncGenerator<ExportedLine> {
  for (let after = 0; ; ) {
    const page = await readRefundsPage(database, organizationId, { after, limit: entriesPerPage });
    for (const { number: _order, ...refund } of page) yield { kind: "refund", ...refund };
    if (page.length < entriesPerPage) return;
    after = page.at(-1)?.number ?? after;
  }
}

async function* auditEntries(database: Database, organizationId: string): AsyncGenerator<ExportedLine> {
  for (let after = 0; ; ) {
    const page = await readAuditPage(database, organizationId, { after, limit: entriesPerPage });
    for (const entry of page) yield { kind: "audit_entry", ...entry };
    if (page.length < entriesPerPage) return;
    after = page.at(-1)?.id ?? after;
  }
}

async function* searches(database: Database, organizationId: string): AsyncGenerator<ExportedLine> {
  let after: LogPlace | undefined;
  for (;;) {
    const page = await readSearchLogPage(database, organizationId, { after, limit: entriesPerPage });
    // What our providers did for it, and what that cost, is not the organization's.
    for (const { token, keyHash: _hash, work: _work, ...search } of page)
      yield { kind: "search", ...search, tokenId: token.tokenId };
    if (page.length < entriesPerPage) return;
    after = page.at(-1);
  }
}

async function* sessions(redis: Redis, organizationId: string): AsyncGenerator<ExportedLine> {
  for (const { idHash, endsAt } of await listSessions(redis, organizationId)) {
    const idleMs = await redis.pttl(sessionKeyOf(idHash));
    if (idleMs > 0) yield { kind: "session", endsAt, endsWhenIdleAt: new Date(Date.now() + idleMs) };
  }
}

async function* answers(database: Database, organizationId: string): AsyncGenerator<ExportedLine> {
  let after: { slot: number; keyHash: string } | undefined;
  for (;;) {
    const page = await readAnswersPage(database, organizationId, { after, limit: answersPerPage });
    for (const { requestId, body } of page) {
      yield { kind: "answer", requestId, body: JSON.parse(body.toString()) };
    }
    if (page.length < answersPerPage) return;
    after = page.at(-1);
  }
}

async function* rawAnswers(
  parts: { database: Database; redis: Redis },
  organizationId: string,
): AsyncGenerator<ExportedLine> {
  for await (const requestId of listRecentSearches(parts.database, organizationId)) {
    const kept = await readRawAnswers(parts.redis, requestId);
    for (const answer of kept?.answers ?? []) yield { kind: "raw_answer", requestId, ...answer };
  }
}
