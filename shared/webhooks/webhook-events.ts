import { z } from "zod";
import { type Change, recordAudit } from "../audit/audit.ts";
import { pauseAfter } from "../concurrency/retry.ts";
import type { Database } from "../database/pool.ts";
import { rowOf, valueOf } from "../database/row.ts";
import type { Querying } from "../database/transaction.ts";
import { newId } from "../ids.ts";
import type { DeliveryOutcome } from "../outcomes.ts";

/**
 * The outbox of events for webhooks. An event is recorded in the transaction of its cause, and a worker sends it later: at least
 * once, under one id, because the process may die between the receiver's answer and its record.
 */

type EventType = "balance.low" | "auto_topup.paused" | "webhook.test";

/**
 * The most events of an organization and a type in 24 hours, so that it floods neither the table nor a receiver. Each type has its
 * own bound: many test events must not use up that of events that a payer has to act on.
 */
export const eventsPerDayMax = 100;
const keptDays = 30;

/** After the first attempt come ten more: 10 s after it, then each after three times as long, 6 h at most; 21 h in all. */
export const attemptsMax = 11;
const firstPauseSeconds = 10;

/** If the process dies during an attempt, the event is sent again after this time. It is longer than an attempt takes. */
const claimSeconds = 60;

/** A claim looks at so many due events. With 100,000, as after hours without a way to the receivers, it would take Postgres a second. */
const dueSeenMax = 2_000;

const eventRow = rowOf({
  eventId: z.string(),
  organizationId: z.string(),
  type: z.string(),
  createdAt: z.date(),
  attempts: z.number(),
  lastAttemptAt: z.date().nullable(),
  /** How the last attempt ended, and the HTTP status if there was an answer. */
  lastOutcome: z.string().nullable(),
  lastStatus: z.number().nullable(),
  nextAttemptAt: z.date().nullable(),
  deliveredAt: z.date().nullable(),
});
/** An event and what became of it. `waiting`: it is sent at `nextAttemptAt`; `given_up`: it is not sent any more. */
export type WebhookEvent = z.infer<typeof eventRow> & { state: "waiting" | "delivered" | "given_up" };

/**
 * Records an event for the organization's webhook. Its body is `{type, timestamp, data}` in JSON, as Standard Webhooks proposes.
 * @returns its id; `none` without a webhook, `too_many` if the organization has had its events of this type and day.
 */
export async function recordEvent(
  transaction: Querying,
  organizationId: string,
  { type, data }: { type: EventType; data: Readonly<Record<string, string | number | null>> },
): Promise<{ eventId: string } | "none" | "too_many"> {
  const { rows } = await transaction.query(
    `select (select count(*) from (select 1 from webhook_events e where e.organization_id = w.organization_id
             and e.type = $3 and e.created_at > now() - interval '24 hours' limit $2) recent) as recent
     from webhooks w where w.organization_id = $1 for share`,
    [organizationId, eventsPerDayMax, type],
  );
  if (!rows[0]) return "none";
  if (valueOf(z.number(), rows[0]) >= eventsPerDayMax) return "too_many";
  const eventId = newId("evt");
  const body = JSON.stringify({ type, timestamp: new Date().toISOString(), data: { organizationId, ...data } });
  await transaction.query("insert into webhook_events (id, organization_id, type, body) values ($1, $2, $3, $4)", [
    eventId,
    organizationId,
    type,
    body,
  ]);
  return { eventId };
}

/** Lists the newest events of an organization, newest first. */
export async function listEvents(database: Querying, organizationId: string, limit: number): Promise<WebhookEvent[]> {
  const { rows } = await database.query(
    "select id as event_id, * from webhook_events where organization_id = $1 order by created_at desc, id desc limit $2",
    [organizationId, limit],
  );
  return rows.map(readEvent);
}

/**
 * Sends an event again under the same id, with as many attempts and pauses as a new one. The attempts before are counted on. It
 * changes nothing about one that waits for its first.
 * @param change has the organization whose event it must be; that of an operator has none, for any.
 * @returns the event; `no_webhook` if there is nowhere to send it; undefined if there is no such event.
 */
export async function replayEvent(
  transaction: Querying,
  change: Change,
  eventId: string,
): Promise<WebhookEvent | "no_webhook" | undefined> {
  const found = await transaction.query(
    "select id as event_id, * from webhook_events where id = $1 and organization_id = coalesce($2, organization_id) for update",
    [eventId, change.organizationId],
  );
  if (!found.rows[0]) return undefined;
  const before = readEvent(found.rows[0]);
  const { rows } = await transaction.query(
    `update webhook_events e set next_attempt_at = now(), earlier_attempts = e.attempts, delivered_at = null
     from webhooks w where e.id = $1 and w.organization_id = e.organization_id returning e.id as event_id, e.*`,
    [eventId],
  );
  if (!rows[0]) return "no_webhook";
  const after = readEvent(rows[0]);
  const { organizationId } = after;
  const sending = ({ state, attempts }: WebhookEvent) => ({ state, attempts });
  const values = { organizationId, subject: eventId, before: sending(before), after: sending(after) };
  await recordAudit(transaction, { ...change, action: "webhook.replayed", ...values });
  return after;
}

/** Deletes events that are older than 30 days, oldest first. */
export async function deleteOldEvents(database: Querying, limit: number): Promise<void> {
  await database.query(
    `delete from webhook_events where id in (
       select id from webhook_events where created_at < now() - make_interval(hours => 24 * $1) order by created_at limit $2)`,
    [keptDays, limit],
  );
}

function readEvent(found: unknown): WebhookEvent {
  const { eventId, organizationId, type, createdAt, ...sending } = eventRow.parse(found);
  const open = sending.nextAttemptAt ? "waiting" : "given_up";
  return { eventId, organizationId, type, createdAt, state: sending.deliveredAt ? "delivered" : open, ...sending };
}

const dueRow = rowOf({
  eventId: z.string(),
  organizationId: z.string(),
  url: z.string(),
  secret: z.string(),
  oldSecrets: z.array(z.string()),
  body: z.string(),
  /** All of them, counting this one. */
  attempts: z.number(),
  /** Those before it was last sent again on request: its pauses begin anew then. */
  earlierAttempts: z.number(),
});
/** An event to send now. The first secret is the current one. */
export type DueEvent = Omit<z.infer<typeof dueRow>, "secret" | "oldSecrets"> & { secrets: string[] };

/**
 * Claims events that are due, the longest due first, and at most one of an organization. Another worker cannot claim them
 * for a minute. The 2,000 longest due are of several organizations, because one has few events in a day.
 * @param claiming.without organizations whose last event is still being sent: a slow receiver delays only its own events.
 */
export async function claimEvents(
  database: Database,
  claiming: { limit: number; without: readonly string[] },
): Promise<DueEvent[]> {
  const { rows } = await database.query({
    name: "claim_webhook_events",
    text: `with due as (
        select distinct on (organization_id) id, next_attempt_at from (
          select id, organization_id, next_attempt_at from webhook_events
          where next_attempt_at <= now() and organization_id <> all ($1)
            -- One that was replayed while its webhook was removed has none, and would take a place for ever.
            and exists (select from webhooks w where w.organization_id = webhook_events.organization_id)
          order by next_attempt_at limit $4) seen
        order by organization_id, next_attempt_at, id
      ), longest as (
        select id from due order by next_attempt_at limit $2
      )
      update webhook_events e
      set attempts = e.attempts + 1, last_attempt_at = now(), next_attempt_at = now() + make_interval(secs => $3)
      from longest l, webhooks w
      -- The time again: another worker may have claimed it since the statement began.
      where e.id = l.id and e.next_attempt_at <= now() and w.organization_id = e.organization_id
      returning e.id as event_id, e.organization_id, w.url, w.secret,
        array(select o.secret from webhook_old_secrets o where o.organization_id = e.organization_id and o.ends_at > now())
          as old_secrets, e.body, e.attempts, e.earlier_attempts`,
    values: [claiming.without, claiming.limit, claimSeconds, dueSeenMax],
  });
  return rows
    .map((row) => dueRow.parse(row))
    .map(({ secret, oldSecrets, ...event }) => ({ ...event, secrets: [secret, ...oldSecrets] }));
}

/** How an attempt ended. `status` is that of the answer, if there was one. */
export interface AttemptEnd {
  outcome: DeliveryOutcome;
  status?: number;
}

/**
 * Records how an attempt ended. An event that was replayed or given up meanwhile keeps its new state.
 * @returns whether the event was given up, because this was its last attempt or the receiver wants no more (410).
 */
export async function recordAttempt(
  database: Database,
  { eventId, attempts, earlierAttempts }: DueEvent,
  { outcome, status }: AttemptEnd,
): Promise<{ givenUp: boolean }> {
  const isDelivered = outcome === "delivered";
  const attemptsNow = attempts - earlierAttempts;
  const givenUp = !isDelivered && (attemptsNow >= attemptsMax || status === 410);
  const pauseSeconds = isDelivered || givenUp ? null : pauseAfter(attemptsNow, firstPauseSeconds);
  const { rowCount } = await database.query(
    `update webhook_events set last_outcome = $3, last_status = $4, delivered_at = case when $5 then now() end,
       next_attempt_at = now() + make_interval(secs => $6)
     where id = $1 and attempts = $2 and earlier_attempts = $7 and next_attempt_at is not null`,
    [eventId, attempts, outcome, status, isDelivered, pauseSeconds, earlierAttempts],
  );
  return { givenUp: givenUp && rowCount === 1 };
}
