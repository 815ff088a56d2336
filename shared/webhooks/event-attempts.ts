import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { rowOf } from "../database/row.ts";
import type { DeliveryOutcome } from "../outcomes.ts";

/** The attempts to send an event: which are due, and how each ended. */

/** After the first attempt come ten more: 10 s after it, then each after three times as long, 6 h at most; 21 h in all. */
export const attemptsMax = 11;
const firstPauseSeconds = 10;
const pauseFactor = 3;
const pauseSecondsMax = 6 * 3_600;

/** If the process dies during an attempt, the event is sent again after this time. It is longer than an attempt takes. */
const claimSeconds = 60;

const dueRow = rowOf({
  eventId: z.string(),
  organizationId: z.string(),
  url: z.string(),
  secret: z.string(),
  oldSecret: z.string().nullable(),
  body: z.string(),
  /** All of them, counting this one. */
  attempts: z.number(),
  /** Those before it was last sent again on request: its pauses begin anew then. */
  earlierAttempts: z.number(),
});
/** An event to send now. The first secret is the current one. */
export type DueEvent = Omit<z.infer<typeof dueRow>, "secret" | "oldSecret"> & { secrets: string[] };

/**
 * Claims events that are due, the longest due first, and at most one of an organization. Another worker cannot claim them
 * for a minute.
 * @param claiming.without organizations whose last event is still being sent: a slow receiver delays only its own events.
 */
export async function claimEvents(
  database: Database,
  claiming: { limit: number; without: readonly string[] },
): Promise<DueEvent[]> {
  const { rows } = await database.query({
    name: "claim_webhook_events",
    text: `with due as (
        select distinct on (organization_id) id, next_attempt_at from webhook_events
        where next_attempt_at <= now() and organization_id <> all ($1)
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
        case when w.old_secret_ends_at > now() then w.old_secret end as old_secret, e.body, e.attempts, e.earlier_attempts`,
    values: [claiming.without, claiming.limit, claimSeconds],
  });
  return rows
    .map((row) => dueRow.parse(row))
    .map(({ secret, oldSecret, ...event }) => ({
      ...event,
      secrets: oldSecret === null ? [secret] : [secret, oldSecret],
    }));
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
  const pauseSeconds = isDelivered || givenUp ? null : pauseAfter(attemptsNow);
  await database.query(
    `update webhook_events set last_outcome = $3, last_status = $4, delivered_at = case when $5 then now() end,
       next_attempt_at = now() + make_interval(secs => $6)
     where id = $1 and attempts = $2 and next_attempt_at is not null`,
    [eventId, attempts, outcome, status, isDelivered, pauseSeconds],
  );
  return { givenUp };
}

/** Seconds from the end of this attempt to the next one. */
export const pauseAfter = (attempts: number) =>
  Math.min(pauseSecondsMax, firstPauseSeconds * pauseFactor ** (attempts - 1));
