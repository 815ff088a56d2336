import fc from "fast-check";
import type { Redis } from "ioredis";
import { holdIndexKey, keysOf } from "../../../../shared/credits/redis-keys.ts";
import type {
  Decision,
  SettlementRequest,
  TokenSpending,
  VersionedBalance,
} from "../../../../shared/credits/ledger.ts";
import type { EndedCalls } from "../../../../shared/credits/unpaid-calls.ts";
import type { Database } from "../../../../shared/database/pool.ts";
import { grantInModel } from "./postgres-model.ts";
import type { PostgresModel } from "./postgres-state.ts";
import { keyHashes, type Participants, readable, type Search, searchesMax } from "./participants.ts";
import { emptyRedis, type Message, type RedisModel } from "./redis-model.ts";
import type { PostgresSnapshot } from "./snapshots.ts";

/** The expected state of Postgres and Redis for one run, and the messages between them that are not delivered yet. */
export interface Model {
  participants: Participants;
  postgres: PostgresModel;
  redis: Map<string, RedisModel>;
  messagesInFlight: Message[];
  /** Flights whose calls count as unpaid. */
  countedFlights: Set<string>;
  /** Copies of Redis that a restore brings back, as a restart from an old snapshot does. */
  saved: Map<string, RedisModel>;
  /** Organizations whose keys in Redis were lost. Only their searches may end as out_of_credits after an admission. */
  redisLostData: Set<string>;
  /** Organizations with a lost message. */
  messagesLost: Set<string>;
  /** Organizations with holds that were placed under other limits than are in force. Their searches may end at a limit. */
  limitsLag: Set<string>;
  /** What corrections took from organizations at last, and the version of that balance. See {@link takenMilsOf}. */
  creditTaken: Map<string, { mils: number; version: number }>;
  confirmed: Set<string>;
  /** The commands so far, printed with a counterexample. */
  history: string[];
  /** Numbers the answers, so that two runs of a search have different bytes. */
  answers: number;
}

/** The real system, with copies and snapshots of its state. */
export interface Real {
  database: Database;
  redis: Redis;
  saved: Map<string, { key: string; bytes: Buffer; expiresAtMs: number }[]>;
  /** The last snapshot of Postgres; undefined after a call that may have changed it. */
  postgres: PostgresSnapshot | undefined;
  /** Counts each kind of step, so that a test can check that they occurred. */
  met: (what: string) => void;
}

export function newModel(participants: Participants): Model {
  const ids = participants.organizations.map(({ id }) => id);
  const postgres: PostgresModel = {
    accounts: new Map(ids.map((id) => [id, { balanceMils: 0, version: 0, entries: [], refunds: [] }])),
    decided: new Map(),
    reversed: new Set(),
    undelivered: new Set(),
    paid: new Map(),
    answers: new Map(),
    grants: new Map(),
    corrections: new Map(),
    limits: new Map(participants.organizations.map(({ firstLimit: { ownerId, dayMils } }) => [ownerId, [{ dayMils }]])),
    chargedUnder: new Map(),
  };
  const messagesInFlight: Message[] = [];
  for (const { id: organizationId, firstGrant } of participants.organizations) {
    const balance = grantInModel(postgres, { organizationId, ...firstGrant });
    if (balance !== "refused") messagesInFlight.push(balanceMessage(organizationId, balance));
  }
  return {
    participants,
    postgres,
    redis: new Map(ids.map((id) => [id, emptyRedis()])),
    messagesInFlight,
    countedFlights: new Set(),
    saved: new Map(),
    redisLostData: new Set(),
    messagesLost: new Set(),
    limitsLag: new Set(),
    creditTaken: new Map(),
    confirmed: new Set(),
    history: [],
    answers: 0,
  };
}

export function redisModelOf(model: Model, organizationId: string): RedisModel {
  const redisModel = model.redis.get(organizationId);
  if (!redisModel) throw new Error(`no model of Redis for ${organizationId}`);
  return redisModel;
}

/** Chooses a search. Even numbers prefer the searches that the command can change, if there are any. */
export const searchChoice = fc.nat(2 * searchesMax - 1);

export function searchOf(model: Model, choice: number, isLikely: (search: Search) => boolean): Search {
  const { searches } = model.participants;
  const likely = choice % 2 === 0 ? searches.filter(isLikely) : [];
  const from = likely.length > 0 ? likely : searches;
  const search = from[Math.floor(choice / 2) % from.length];
  if (!search) throw new Error("the run has no searches");
  return search;
}

/** Notes that limits and the open holds of an organization may disagree, unless it has no open hold. */
export function noteLimits(model: Model, organizationId: string, agree: boolean): void {
  if (redisModelOf(model, organizationId).holds.size === 0) model.limitsLag.delete(organizationId);
  else if (!agree) model.limitsLag.add(organizationId);
}

/**
 * The mils that corrections took and that searches may hold all the same: until Redis has that balance, and no hold is left
 * from before.
 */
export function takenMilsOf(model: Model, organizationId: string): number {
  const taken = model.creditTaken.get(organizationId);
  const { balance, holds } = redisModelOf(model, organizationId);
  if (!taken || holds.size > 0 || (balance?.version ?? 0) < taken.version) return taken?.mils ?? 0;
  model.creditTaken.delete(organizationId);
  return 0;
}

export function organizationAt(model: Model, at: number) {
  const organization = model.participants.organizations[at];
  if (!organization) throw new Error(`no organization ${at}`);
  return organization;
}

/** An error with the history of the run, in which readable names replace the ids. */
export function withHistory({ participants, history }: Model, step: string, error: unknown): Error {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new Error(readable(participants, [...history, `${step}: ${reason}`].join("\n")), { cause: error });
}

/** A message that brings a balance, and what limited tokens spent, and ends no hold. */
export const balanceMessage = (
  organizationId: string,
  { balanceMils, version, spending }: VersionedBalance,
  tokens: readonly (TokenSpending | undefined)[] = [],
): Message => ({
  organizationId,
  balance: { balanceMils, version, ...(spending !== undefined && { spending }) },
  tokens: tokens.filter((token) => token !== undefined),
  ends: [],
  frees: [],
});

/** A request to settle, what a failure after an earlier charge does to the hold, and whether a worker may still have it. */
export type Settlement = SettlementRequest & { ifCharged: "end_hold" | "keep_hold"; callerDisconnected?: boolean };

/** The messages that follow the decisions of a batch, one per organization. */
export function messagesOf(decisions: readonly Decision[], settlements: readonly Settlement[]): Message[] {
  const messages = new Map<string, Message>();
  for (const settlement of settlements) {
    const decision = decisions.find(({ requestId }) => requestId === settlement.requestId);
    if (!decision) continue;
    const message =
      messages.get(settlement.organizationId) ?? balanceMessage(settlement.organizationId, decision.balance);
    messages.set(settlement.organizationId, message);
    // All decisions of one batch of an organization have one version.
    const { token } = decision;
    if (token && message.tokens.every(({ tokenId }) => tokenId !== token.tokenId)) message.tokens.push(token);
    const { requestId, key, wanted } = settlement;
    const paid = decision.kind === "charge" || decision.reason === "already_paid";
    if (wanted === "charge" && paid && !decision.reversed) message.ends.push({ requestId, key, answered: true });
    else if (!paid) {
      const isGone = decision.reason === "caller_disconnected";
      const isLeft = isGone && settlement.callerDisconnected;
      const calls = isGone && !isLeft ? callsOf(requestId) : undefined;
      message.ends.push({ requestId, key, failure: `failure of ${requestId}`, isLeft, calls });
    } else if (settlement.ifCharged === "end_hold") message.ends.push({ requestId, key });
  }
  return [...messages.values()];
}

/** Calls that a search leaves unpaid. Their budget is so large that none of them is ever refused. */
export const callsOf = (requestId: string): EndedCalls => ({
  kind: "unpaid",
  calls: 2,
  flight: requestId,
  tokenId: "tok",
  isKeyed: false,
  callsPerHour: 1_000_000,
});

/** All keys that Redis may hold for an organization. */
export function redisKeysOf(organizationId: string): string[] {
  const { balance, holds, window, unpaid, tokens, record } = keysOf(organizationId);
  return [balance, holds, window, unpaid, `${unpaid}:tok`, tokens, ...keyHashes.map(record)];
}

/** Removes an organization from Redis, together with the entries of its holds in the index. */
export async function removeKeys({ redis }: Real, organizationId: string): Promise<void> {
  const entries = (await redis.zrange(holdIndexKey, 0, "-1")).filter((entry) => entry.startsWith(`${organizationId}|`));
  if (entries.length > 0) await redis.zrem(holdIndexKey, ...entries);
  await redis.del(...redisKeysOf(organizationId));
}
