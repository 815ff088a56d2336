import fc from "fast-check";
import type { Redis } from "ioredis";
import { keysOf } from "../../../../shared/credits/holds.ts";
import type { Decision, SettlementRequest } from "../../../../shared/credits/ledger.ts";
import type { VersionedBalance } from "../../../../shared/credits/versioned-balance.ts";
import type { Database } from "../../../../shared/database/pool.ts";
import { type Books, grantInBooks } from "./books.ts";
import { type Cast, keyHashes, readable, type Search, searchesMax } from "./cast.ts";
import { emptyGate, type Gate, type Message } from "./gate.ts";
import type { SeenBooks, SeenGate } from "./seen.ts";

/** All that the model believes. The real counterparts are in Postgres and Redis; the messages are on their way. */
export interface Money {
  cast: Cast;
  books: Books;
  gates: Map<string, Gate>;
  bag: Message[];
  /** What was copied out of Redis, to come back as a restart from the past. */
  saved: Map<string, Gate>;
  /** Organizations whose Redis has forgotten something: only theirs may be charged what they do not have. */
  forgetful: Set<string>;
  /** Organizations of which a message was lost. */
  lossy: Set<string>;
  confirmed: Set<string>;
  /** What has happened so far, for the reader of a counterexample. */
  story: string[];
  /** Numbers the answers, so that no two runs of a search have the same bytes. */
  answers: number;
}

/** The real system, and copies of an organization's keys out of it. */
export interface Real {
  database: Database;
  redis: Redis;
  saved: Map<string, { key: string; bytes: Buffer; expiresAtMs: number }[]>;
  /** What Redis held of an organization when last looked at, unless it has forgotten something since. */
  seen: Map<string, SeenGate>;
  /** What Postgres held when last looked at; nothing once it was called since. */
  books: SeenBooks | undefined;
  /** Counts what was met, so that a check that meets nothing is noticed. */
  met: (what: string) => void;
}

export function beginMoney(cast: Cast): Money {
  const ids = cast.organizations.map(({ id }) => id);
  const books: Books = {
    accounts: new Map(ids.map((id) => [id, { balanceMils: 0, version: 0, entries: [] }])),
    decided: new Map(),
    reversed: new Set(),
    undelivered: new Set(),
    paid: new Map(),
    grants: new Map(),
  };
  const bag: Message[] = [];
  for (const { id: organizationId, firstGrant } of cast.organizations) {
    const balance = grantInBooks(books, { organizationId, ...firstGrant });
    if (balance !== "refused") bag.push(newsOf(organizationId, balance));
  }
  return {
    cast,
    books,
    gates: new Map(ids.map((id) => [id, emptyGate()])),
    bag,
    saved: new Map(),
    forgetful: new Set(),
    lossy: new Set(),
    confirmed: new Set(),
    story: [],
    answers: 0,
  };
}

export function gateOf(money: Money, organizationId: string): Gate {
  const gate = money.gates.get(organizationId);
  if (!gate) throw new Error(`no gate of ${organizationId}`);
  return gate;
}

/** A wish for a search: every other one is for a search that something can happen to, where there is any. */
export const searchWish = fc.nat(2 * searchesMax - 1);

export function searchOf(money: Money, wish: number, isLikely: (search: Search) => boolean): Search {
  const { searches } = money.cast;
  const likely = wish % 2 === 0 ? searches.filter(isLikely) : [];
  const from = likely.length > 0 ? likely : searches;
  const search = from[Math.floor(wish / 2) % from.length];
  if (!search) throw new Error("a cast without searches");
  return search;
}

export function organizationAt(money: Money, at: number) {
  const organization = money.cast.organizations[at];
  if (!organization) throw new Error(`no organization ${at}`);
  return organization;
}

/** An error with the whole story before it, in the words of the commands instead of ids. */
export function retold({ cast, story }: Money, place: string, error: unknown): Error {
  const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new Error(readable(cast, [...story, `${place}: ${told}`].join("\n")), { cause: error });
}

/** A message that only brings a balance. */
export const newsOf = (organizationId: string, { balanceMils, version }: VersionedBalance): Message => ({
  organizationId,
  balance: { balanceMils, version },
  ends: [],
});

/** The messages that a settlement sends for what it decided, one per organization. */
export function messagesOf(
  money: Money,
  decisions: readonly Decision[],
  endings: readonly (SettlementRequest & { ifCharged: "end_hold" | "keep_hold" })[],
): Message[] {
  const messages = new Map<string, Message>();
  for (const ending of endings) {
    const decision = decisions.find(({ requestId }) => requestId === ending.requestId);
    if (!decision) continue;
    const message = messages.get(ending.organizationId) ?? newsOf(ending.organizationId, decision.balance);
    messages.set(ending.organizationId, message);
    const { requestId, key, wanted } = ending;
    const paid = decision.kind === "charge" || decision.reason === "already_paid";
    money.answers += 1;
    if (wanted === "charge" && paid && !decision.reversed)
      message.ends.push({ requestId, key, answer: Buffer.from(`answer ${money.answers} of ${requestId}`) });
    else if (!paid) message.ends.push({ requestId, key, failure: `failure ${money.answers} of ${requestId}` });
    else if (ending.ifCharged === "end_hold") message.ends.push({ requestId, key });
  }
  return [...messages.values()];
}

/** Every key that Redis may have of an organization. */
export function redisKeysOf(organizationId: string): string[] {
  const { balance, holds, window, record } = keysOf(organizationId);
  return [balance, holds, window, ...keyHashes.map(record)];
}
