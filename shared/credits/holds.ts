import type { Redis } from "ioredis";
import { z } from "zod";
import { protocolTimes } from "../protocol-times.ts";
import { Script } from "../redis/script.ts";
import type { IdempotencyKey } from "./idempotency-key.ts";
import type { VersionedBalance } from "./versioned-balance.ts";
import type { Plan } from "./plans.ts";

/**
 * Holds: mils set aside for searches that run. For each organization Redis keeps a copy of the balance in Postgres with
 * its version, the open holds with their sum, the rate window, and a record for each Idempotency-Key. What can be spent
 * is balance − held. Redis never computes a balance of its own. An index has the open holds of all organizations.
 *
 *   open      entered by admit.lua, if the balance, the concurrency limit and the rate window allow the search.
 *     ├─▶ charged   left by settle.lua, after Postgres inserted the charge: the worker had an answer in time.
 *     └─▶ refunded  left by settle.lua, after Postgres inserted a refund: the worker's search failed; the API's deadline
 *                   passed, its caller disconnected, or its admission or enqueueing has an unknown outcome; or the
 *                   sweeper found the hold open 2 s after its deadline.
 *
 * Each of them inserts the deciding entry in Postgres first. If it dies before settle.lua, the sweeper finds the decision
 * and drops the hold. A Redis that was flushed has forgotten its holds; the searches are decided in Postgres all the same.
 */

const here = (file: string) => new URL(file, import.meta.url);
const admitScript = new Script(
  "admit",
  here("window.lua"),
  here("deadline-entry.lua"),
  here("abandoned.lua"),
  here("admit.lua"),
);
const usageScript = new Script("usage", here("window.lua"), here("usage.lua"));
const settleScript = Script.endingWork("settle", here("deadline-entry.lua"), here("abandoned.lua"), here("settle.lua"));

export function defineHoldScripts(redis: Redis): void {
  for (const script of [admitScript, usageScript, settleScript]) script.define(redis);
}

/** The index of all organizations' open holds; hold-deadlines.ts reads it. */
export const holdIndexKey = "holds:deadlines";

export const keysOf = (organizationId: string) => ({
  balance: `{${organizationId}}:pair`,
  holds: `{${organizationId}}:holds`,
  window: `{${organizationId}}:window`,
  abandoned: `{${organizationId}}:abandoned`,
  record: (keyHash: string) => `{${organizationId}}:key:${keyHash}`,
});

/** The rate window: requests counted so far, and milliseconds until it ends. */
export interface RateWindow {
  used: number;
  leftMs: number;
}

const otherOutcomes = ["remembered", "answered", "key_reused", "cold", "closed", "limited", "crowded"] as const;
const bytes = z.string();
const count = z.coerce.number();
const window = [count, count] as const;
const admissionReply = z.union([
  z.tuple([z.literal("held"), ...window, count, count]),
  z.tuple([z.literal("replayed"), ...window, z.string(), bytes]),
  z.tuple([z.literal("waiting"), ...window, z.string()]),
  z.tuple([z.literal("short"), ...window, count, count, count]),
  z.tuple([z.literal("abandoned"), ...window, count]),
  z.tuple([z.enum([...otherOutcomes]), ...window]),
]);

export type Admission = { window: RateWindow } & (
  | { outcome: "held"; deadlineAtMs: number; remainingMils: number }
  | { outcome: "replayed"; requestId: string; body: Buffer }
  | { outcome: "waiting"; requestId: string }
  | { outcome: "abandoned"; retryAfterMs: number }
  | { outcome: "short"; availableMils: number; heldMils: number; version: number }
  | { outcome: (typeof otherOutcomes)[number] }
);

export interface AdmissionRequest {
  organizationId: string;
  requestId: string;
  /** The mils to hold; 0 for a search whose key has paid already. */
  priceMils: number;
  budgetMs: number;
  plan: Plan;
  key: IdempotencyKey | undefined;
  /** Places no hold: only replays, and waits for a key's first request, are admitted. */
  closed: boolean;
  /** Postgres has the answer under the key: nothing is checked or held, only the rate window is read. */
  remembered?: boolean | undefined;
  /** The process has as many searches of the organization as its plan allows in flight, whose answers may be under way. */
  crowded?: boolean | undefined;
}

/** Admits a search in one atomic step and one round trip: its key, credits, concurrency, rate window, hold. */
export async function admit(redis: Redis, request: AdmissionRequest): Promise<Admission> {
  const { plan, key } = request;
  const keys = keysOf(request.organizationId);
  const reply = await admitScript.run(
    redis,
    // Without an Idempotency-Key another key stands in for the record; the script does not read it.
    [keys.balance, keys.holds, keys.window, key ? keys.record(key.hash) : keys.balance, holdIndexKey, keys.abandoned],
    [
      request.requestId,
      request.priceMils,
      plan.concurrency,
      plan.windowLimit,
      plan.windowSeconds * 1_000,
      Math.max(0, Math.round(request.budgetMs)),
      key?.fingerprint ?? "",
      protocolTimes.idempotencyRecordMs,
      request.closed ? "1" : "",
      key?.hash ?? "",
      request.remembered ? "1" : "",
      request.crowded ? "1" : "",
    ],
  );
  return readAdmission(admissionReply.parse(reply));
}

function readAdmission(reply: z.infer<typeof admissionReply>): Admission {
  const state = { window: { used: reply[1], leftMs: reply[2] } };
  switch (reply[0]) {
    case "held":
      return { ...state, outcome: "held", deadlineAtMs: reply[3], remainingMils: reply[4] };
    case "replayed":
      return { ...state, outcome: "replayed", requestId: reply[3], body: Buffer.from(reply[4]) };
    case "waiting":
      return { ...state, outcome: "waiting", requestId: reply[3] };
    case "short":
      return { ...state, outcome: "short", availableMils: reply[3], heldMils: reply[4], version: reply[5] };
    case "abandoned":
      return { ...state, outcome: "abandoned", retryAfterMs: reply[3] };
    default:
      return { ...state, outcome: reply[0] };
  }
}

/** The end of a hold, and how it ends the record of its Idempotency-Key. */
export interface HoldEnd {
  requestId: string;
  key?: IdempotencyKey | undefined;
  /** The answer is in Postgres; or the failure for the repeats that wait; or neither, which frees the key. */
  answered?: boolean | undefined;
  failure?: string | undefined;
  /**
   * Of a search without a key: its caller has hung up, which is counted. While it is `running` at a worker its mils are
   * free, and the hold stays as a place in flight until the worker ends it.
   */
  abandoned?: "running" | "ended" | undefined;
}

/**
 * Ends holds of one organization and stores its newest balance, in one step. Running it again has no further effect. It
 * also runs in a Redis that is out of memory.
 */
export function settleHolds(
  redis: Redis,
  organizationId: string,
  balance: VersionedBalance,
  ends: readonly HoldEnd[],
): Promise<unknown> {
  const { balance: balanceKey, holds, abandoned, record } = keysOf(organizationId);
  const records: string[] = [];
  const args = ends.flatMap((end) => {
    const recordIndex = end.key ? records.push(record(end.key.hash)) : 0;
    return [end.requestId, recordIndex, fateOf(end), end.failure ?? ""];
  });
  const { balanceMils, version } = balance;
  return settleScript.run(
    redis,
    [balanceKey, holds, holdIndexKey, abandoned, ...records],
    [balanceMils, version, protocolTimes.idempotencyEndMs, ...args],
  );
}

function fateOf({ key, answered, failure, abandoned }: HoldEnd): string {
  if (key) return answered ? "answered" : failure === undefined ? "freed" : "failed";
  if (!abandoned) return "none";
  return abandoned === "running" ? "abandoned_running" : "abandoned";
}

/**
 * The first request under a key: it runs, was answered (look in Postgres), has failed, or left no record (`gone`). A body
 * was left by an earlier version.
 */
export type IdempotencyState =
  | { outcome: "running" | "answered" | "gone" }
  | { outcome: "replayed"; requestId: string; body: Buffer }
  | { outcome: "failed"; failure: string };

export async function readIdempotencyState(
  redis: Redis,
  organizationId: string,
  keyHash: string,
): Promise<IdempotencyState> {
  const key = keysOf(organizationId).record(keyHash);
  const [requestId, body, failure, answered] = await redis.hmget(key, "request", "body", "failure", "answered");
  if (!requestId) return { outcome: "gone" };
  if (body) return { outcome: "replayed", requestId, body: Buffer.from(body) };
  if (failure) return { outcome: "failed", failure };
  return { outcome: answered === null ? "running" : "answered" };
}

const usageReply = z.union([
  z.tuple([z.literal("read"), ...window, count, count, count, count, count]),
  z.tuple([z.enum(["limited", "cold"]), ...window, count]),
]);

/** An organization's credit in Redis at one moment. Available is balance − held, and never below 0. */
export interface CreditState extends VersionedBalance {
  heldMils: number;
  searchesInFlight: number;
}

/** Reads what an organization can spend, for one request of its rate window; for none if `tokenTaken`. */
export async function readUsage(redis: Redis, organizationId: string, plan: Plan, tokenTaken = false) {
  const keys = keysOf(organizationId);
  const reply = await usageScript.run(
    redis,
    [keys.balance, keys.holds, keys.window],
    [plan.windowLimit, plan.windowSeconds * 1_000, tokenTaken ? "1" : ""],
  );
  const read = usageReply.parse(reply);
  const [outcome, used, leftMs, availableMils] = read;
  const creditState: CreditState | undefined =
    read[0] === "read"
      ? { balanceMils: read[4], version: read[5], heldMils: read[6], searchesInFlight: read[7] }
      : undefined;
  return { outcome, window: { used, leftMs }, availableMils, creditState };
}
