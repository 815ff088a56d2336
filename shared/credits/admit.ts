import type { Redis } from "ioredis";
import { z } from "zod";
import { plainAdmissions } from "../outcomes.ts";
import { protocolTimes } from "../protocol-times.ts";
import { Script } from "../redis/script.ts";
import type { IdempotencyKey, PayerLimits } from "../queue/search-job.ts";
import type { Plan } from "./plans.ts";
import type { LimitName } from "./limits.ts";
import { holdIndexKey, keysOf, openOrganizationsKey } from "./redis-keys.ts";
import { unpaidLevels } from "./unpaid-calls.ts";

/** Admission in Redis: the step that places a hold, or finds why not. */

const here = (file: string) => new URL(file, import.meta.url);
const admitScript = new Script(
  "admit",
  here("limits.lua"),
  here("deadline-entry.lua"),
  here("unpaid-calls.lua"),
  here("admit.lua"),
);

/** The rate window: requests counted so far, and milliseconds until it ends. */
export interface RateWindow {
  used: number;
  leftMs: number;
}

const count = z.coerce.number();
const window = [count, count] as const;
const admissionReply = z.union([
  z.tuple([z.literal("held"), ...window, count, count, count, count]),
  z.tuple([z.literal("insufficient_credit"), ...window, count, count, count]),
  z.tuple([
    z.literal("spending_limit"),
    ...window,
    z.enum(["organization", "token"]),
    z.enum(["day", "month"]),
    count,
    count,
    count,
  ]),
  z.tuple([z.literal("unpaid_calls"), ...window, count]),
  z.tuple([z.literal("balance_missing"), ...window, count]),
  z.tuple([z.enum(plainAdmissions), ...window]),
]);

/** The open searches of the organization, with the one that was admitted, and the organizations that have any. */
export interface OpenSearches {
  openSearches: number;
  organizations: number;
}

export type Admission = { window: RateWindow } & (
  | ({ outcome: "held"; deadlineAtMs: number; remainingMils: number } & OpenSearches)
  | { outcome: "unpaid_calls"; retryAfterMs: number }
  | { outcome: "balance_missing"; version: number }
  | { outcome: "insufficient_credit"; availableMils: number; heldMils: number; version: number }
  | { outcome: "spending_limit"; limit: LimitName; spentMils: number; heldMils: number; version: number }
  | { outcome: (typeof plainAdmissions)[number] }
);

export interface AdmissionRequest {
  organizationId: string;
  tokenId: string;
  requestId: string;
  /** The mils to hold. */
  priceMils: number;
  budgetMs: number;
  plan: Plan;
  limits?: PayerLimits | undefined;
  key: IdempotencyKey | undefined;
  /** From so many open searches of the organization on, no hold is placed: only replays and waits for a key's first request. */
  openMax?: number | undefined;
  /** Postgres has the answer under the key: nothing is checked or held, only the rate window is read. */
  hasStoredAnswer?: boolean | undefined;
  /** The process has as many searches of the organization as its plan allows in flight, whose answers may be under way. */
  atConcurrencyLimit?: boolean | undefined;
}

/** Admits a search in one atomic step and one round trip: its key, credits, limits, concurrency, rate window, hold. */
export async function admit(redis: Redis, request: AdmissionRequest): Promise<Admission> {
  const { plan, key } = request;
  const keys = keysOf(request.organizationId);
  const reply = await admitScript.run(
    redis,
    // Without an Idempotency-Key another key stands in for the record; the script does not read it.
    [
      keys.balance,
      keys.holds,
      keys.window,
      key ? keys.record(key.hash) : keys.balance,
      holdIndexKey,
      ...unpaidLevels(request.organizationId, request.tokenId, key !== undefined),
      keys.tokens,
      openOrganizationsKey,
    ],
    [
      request.requestId,
      request.priceMils,
      plan.concurrency,
      plan.windowLimit,
      plan.windowSeconds * 1_000,
      Math.max(0, Math.round(request.budgetMs)),
      key?.fingerprint ?? "",
      protocolTimes.idempotencyRecordMs,
      request.openMax ?? "",
      key?.hash ?? "",
      request.hasStoredAnswer ? "1" : "",
      request.atConcurrencyLimit ? "1" : "",
      ...limitArguments(request),
    ],
  );
  return readAdmission(admissionReply.parse(reply));
}

function limitArguments({ limits }: AdmissionRequest): (string | number)[] {
  if (!limits) return [];
  const { organization, token } = limits;
  const ofToken = token ? [token.tokenId, token.dayMils ?? "", token.monthMils ?? ""] : ["", "", ""];
  return [organization?.dayMils ?? "", organization?.monthMils ?? "", ...ofToken];
}

function readAdmission(reply: z.infer<typeof admissionReply>): Admission {
  const state = { window: { used: reply[1], leftMs: reply[2] } };
  switch (reply[0]) {
    case "held": {
      const open = { openSearches: reply[5], organizations: reply[6] };
      return { ...state, outcome: "held", deadlineAtMs: reply[3], remainingMils: reply[4], ...open };
    }
    case "insufficient_credit":
      return {
        ...state,
        outcome: "insufficient_credit",
        availableMils: reply[3],
        heldMils: reply[4],
        version: reply[5],
      };
    case "spending_limit": {
      const limit = { scope: reply[3], period: reply[4] };
      return { ...state, outcome: "spending_limit", limit, spentMils: reply[5], heldMils: reply[6], version: reply[7] };
    }
    case "unpaid_calls":
      return { ...state, outcome: "unpaid_calls", retryAfterMs: reply[3] };
    case "balance_missing":
      return { ...state, outcome: "balance_missing", version: reply[3] };
    default:
      return { ...state, outcome: reply[0] };
  }
}
