import type { Redis } from "ioredis";
import { z } from "zod";
import { expandAnswer } from "../../shared/compress-answer.ts";
import { readKeptDays } from "../../shared/credits/kept-answers.ts";
import type { Database } from "../../shared/database/pool.ts";
import { showOrganization } from "../../shared/organizations/organizations.ts";
import { readThreshold } from "../../shared/webhooks/low-balance.ts";
import { listEvents } from "../../shared/webhooks/webhook-events.ts";
import { readWebhook } from "../../shared/webhooks/webhooks.ts";
import { readAutoTopup } from "../../api/auto-topups/auto-topup.ts";
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

  for (const part of parts) yield* readPart(database, organizationId, part);
  for (const { idHash, endsAt } of await listSessions(redis, organizationId)) {
    const idleMs = await redis.pttl(sessionKeyOf(idHash));
    if (idleMs > 0) yield { kind: "session", endsAt, endsWhenIdleAt: new Date(Date.now() + idleMs) };
  }
  for await (const requestId of listRecentSearches(database, organizationId)) {
    const kept = await readRawAnswers(redis, requestId);
    for (const answer of kept?.answers ?? []) yield { kind: "raw_answer", requestId, ...answer };
  }
}

/** Rows of an organization, each as a line. A timestamp in a key has whole milliseconds, as a date in JavaScript. */
interface Part {
  kind: string;
  /** What a line has, by its names in the database. */
  columns: string;
  from: string;
  /** Gives the rows an order. */
  key: readonly string[];
  rowsPerPage?: number;
  /** What a line has in place of its columns. */
  toFields?: (row: Fields) => Promise<Fields>;
}
type Fields = Record<string, unknown>;

const parts: readonly Part[] = [
  {
    kind: "auto_topup_payment",
    columns: `id as payment_id, mils, asked_at, state, attempts, customer_id, payment_method_id, payment_intent_id, failure,
      ended_at`,
    from: "auto_topup_payments",
    key: ["id"],
  },
  {
    kind: "audit_entry",
    columns: "id, at, actor_kind, actor, origin, action, organization_id as org_id, subject, before, after, request_id",
    from: "audit_entries",
    key: ["id"],
  },
  {
    kind: "ledger_entry",
    columns: `kind as entry, version, created_at as at, amount_mils, balance_after_mils, request_id, grant_id, token_id,
      reason`,
    from: "ledger_entries",
    key: ["version"],
  },
  {
    // Of the last 30 days.
    kind: "refund",
    columns: "version, created_at as at, request_id, reason, token_id",
    from: "refunds",
    key: ["number"],
  },
  {
    // What our providers did for a search, and what that cost, is not the organization's.
    kind: "search",
    columns: `at, request_id, json_strip_nulls(json_build_object('keyword', keyword, 'location', location, 'language', language,
      'device', device, 'depth', depth, 'targetDomain', target_domain, 'types', types, 'format', format)) as query,
      duration_ms, token_id`,
    from: "search_log",
    key: ["at", "request_id"],
  },
  {
    kind: "refused_search",
    columns: "at, request_id, token_id, code, reason, message, query, refusals",
    from: "refused_searches",
    key: ["at", "request_id"],
  },
  {
    kind: "answer",
    columns: "request_id, body",
    // The key of this table begins with the slot.
    from: "(select * from answers where slot in (0, 1, 2, 3)) answers",
    key: ["slot", "key_hash"],
    rowsPerPage: answersPerPage,
    toFields: async ({ body, ...row }) => ({ ...row, body: await expand(body) }),
  },
  {
    kind: "kept_answer",
    columns: "fetched_at, request_id, body",
    from: "readable_answers",
    key: ["at", "request_id"],
    rowsPerPage: answersPerPage,
    toFields: async ({ body, ...row }) => ({ ...row, ...(await expand(body)) }),
  },
];

const expand = async (body: unknown) =>
  z.looseObject({}).parse(JSON.parse((await expandAnswer(z.instanceof(Buffer).parse(body))).toString()));

async function* readPart(
  database: Database,
  organizationId: string,
  { kind, columns, from, key, rowsPerPage = itemsPerPage, toFields }: Part,
): AsyncGenerator<ExportedLine> {
  const order = key.join(", ");
  const place = key.map((column, at) => `${column} as key_${at}`).join(", ");
  const behind = key.map((_, at) => `$${at + 3}`).join(", ");
  for (let after: unknown[] = []; ; ) {
    // The first column again, by itself: by it alone Postgres leaves out the tables of days that were read.
    const rest = after.length === 0 ? "" : `and ${key[0]} >= $3 and (${order}) > (${behind})`;
    const { rows } = await database.query<Fields>(
      `select ${columns}, ${place} from ${from} where organization_id = $1 ${rest} order by ${order} limit $2`,
      [organizationId, rowsPerPage, ...after],
    );
    for (const { key_0: _first, key_1: _second, ...row } of rows) {
      const fields = inCamelCase(row);
      yield { kind, ...(toFields ? await toFields(fields) : fields) };
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsPerPage) return;
    after = key.map((_, at) => last[`key_${at}`]);
  }
}

const inCamelCase = (row: Fields): Fields =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );

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
