import { setImmediate as nextTurn } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Batcher } from "../concurrency/batcher.ts";
import type { Database } from "../database/pool.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import {
  type PayableCalls,
  type SearchOutcome,
  type SearchTrace,
  sendReply,
  serializeFailure,
} from "../queue/replies.ts";
import { DecidedBatches } from "./decide-batches.ts";
import { type HoldEnd, settleHolds } from "./holds.ts";
import {
  type Decision,
  newestBalance,
  type SettlementRequest,
  type TokenSpending,
  type VersionedBalance,
} from "./ledger.ts";
import { endedCalls, type SearchCalls } from "./unpaid-calls.ts";

/**
 * Ends searches in the one order that survives a crash at any point: Postgres decides, then Redis drops the hold and the reply
 * is sent. After a crash between the two, a second run finds the decision and repeats the second step. Without a second run the
 * sweeper drops the hold and the reconciler reverses the charge. Each step takes all searches that are ready as one batch.
 */

const publishedAtOnceMax = 256;
const publicationsAtOnce = 4;
const retryPauseMs = 50;

/** A search that Postgres has decided, with what Redis has to be given. */
interface DecidedSearch {
  request: SettlementRequest;
  decision: Decision;
  /** The caller's answer or error. */
  outcome: SearchOutcome;
  /** Where to send the outcome; absent if the process that settles also answers. */
  reply?: { inbox: string; trace: SearchTrace; payable?: PayableCalls | undefined } | undefined;
  /**
   * The hold, if a failure meets an earlier charge: `keep_hold`, because the process that charged still sends its answer
   * and drops the hold; or `end_hold` and free its key, because that answer will not come any more.
   */
  ifCharged: "keep_hold" | "end_hold";
  /** Whether its caller disconnected while a worker had it: refunded for that, it keeps its concurrency slot without mils. */
  callerDisconnected?: boolean | undefined;
  /** Its provider calls, which may count as unpaid; see unpaid-calls.ts. */
  calls?: SearchCalls | undefined;
}

interface Unpublished {
  search: DecidedSearch;
  giveUpAtMs: number;
  done: () => void;
}

export class Settlement {
  readonly #redis: Redis;
  readonly #metrics: Metrics;
  readonly #warn: (error: unknown) => void;
  readonly #decisions: DecidedBatches;
  readonly #publications = new Batcher<Unpublished>({
    sizeMax: publishedAtOnceMax,
    concurrency: publicationsAtOnce,
    run: (batch) => this.#publish(batch),
  });
  /** Retries what Redis did not take at once, apart from the other searches, which do not wait for it. */
  readonly #retries = new Batcher<Unpublished>({
    sizeMax: publishedAtOnceMax,
    concurrency: 1,
    pauseMs: retryPauseMs,
    run: (batch) => this.#publish(batch),
  });

  constructor({ database, redis, metrics, log }: { database: Database; redis: Redis; metrics: Metrics; log: Log }) {
    this.#redis = redis;
    this.#metrics = metrics;
    this.#warn = throttledWarning(log, "a settlement was not accepted at once");
    this.#decisions = new DecidedBatches({ database, metrics, warn: this.#warn });
  }

  /**
   * Has Postgres decide who pays for a search. Asking again returns the same decision.
   * @param retryForMs how long to try again while Postgres is unreachable.
   * @throws if Postgres stayed unreachable (the decision is unknown then), or refused the search; an
   *   `UnknownOrganization` if it does not have the organization.
   */
  async decide(request: SettlementRequest, retryForMs: number): Promise<Decision> {
    const decision = await this.#decisions.decide(request, performance.now() + retryForMs);
    if (decision.isNew) {
      this.#metrics.settlements.inc({ kind: decision.kind, reason: decision.reason ?? "delivered" });
      this.#metrics.chargedMils.inc(decision.chargedMils);
    }
    return decision;
  }

  /** For how long Postgres has decided nothing of what is tried again: it may answer other statements. */
  get failingForMs(): number {
    return this.#decisions.failingForMs;
  }

  /**
   * Has Redis drop the hold of a decided search and take its reply. Publishing twice has no further effect. Never rejects: what
   * Redis does not take within `retryForMs` is left to the sweeper and the reconciler.
   */
  publish(search: DecidedSearch, retryForMs: number): Promise<void> {
    const giveUpAtMs = performance.now() + retryForMs;
    return new Promise((done) => this.#publications.add({ search, giveUpAtMs, done }));
  }

  /** Resolves once every search handed in has ended. */
  async idle(): Promise<void> {
    await this.#decisions.idle();
    await nextTurn(); // By then, what was decided last is handed to publish().
    await this.#publications.idle();
    await this.#retries.idle();
  }

  async #publish(batch: Unpublished[]): Promise<void> {
    const failures = await this.#send(batch.map(({ search }) => search));
    for (const published of batch) {
      const { error, isReplied } = failures.get(published.search) ?? {};
      if (error === undefined) {
        published.done();
        continue;
      }
      this.#warn(error);
      if (isReplied) published.search = { ...published.search, reply: undefined };
      if (performance.now() < published.giveUpAtMs) this.#retries.add(published);
      else published.done();
    }
  }

  /**
   * Sends decisions to Redis, all at once: for each organization settle.lua drops the holds, stores the balance and ends the
   * records of keys; then the replies follow.
   * @returns the searches that Redis did not take. If the script of one organization fails, only its searches are among them.
   */
  async #send(
    searches: readonly DecidedSearch[],
  ): Promise<ReadonlyMap<DecidedSearch, { error: unknown; isReplied: boolean }>> {
    const organizations = [...Map.groupBy(searches, (search) => search.request.organizationId)];
    const settled = organizations.map(([organizationId, own]) => {
      const balance = newestBalance(own.map((search) => search.decision.balance));
      const settledWith = { tokens: newestOfTokens(own), before: oldestBefore(own) };
      return settleHolds(this.#redis, organizationId, balance, own.flatMap(holdEnd), settledWith);
    });
    const replied = searches.map(async ({ reply, request, outcome }) => {
      if (reply) await sendReply(this.#redis, { ...reply, requestId: request.requestId, outcome });
    });

    const [ends, replies] = await Promise.all([Promise.allSettled(settled), Promise.allSettled(replied)]);
    const failures = new Map<DecidedSearch, { error: unknown; isReplied: boolean }>();
    for (const [at, end] of ends.entries()) {
      if (end.status === "fulfilled") this.#metrics.unpaidCalls.inc(end.value);
      else
        for (const search of organizations[at]?.[1] ?? []) failures.set(search, { error: end.reason, isReplied: true });
    }
    for (const [at, reply] of replies.entries()) {
      const search = searches[at];
      if (reply.status === "rejected" && search) failures.set(search, { error: reply.reason, isReplied: false });
    }
    return failures;
  }
}

/** What each limited token of these searches spent by its newest decision. */
function newestOfTokens(searches: readonly DecidedSearch[]): TokenSpending[] {
  const newest = new Map<string, TokenSpending>();
  for (const { decision } of searches) {
    const { token } = decision;
    if (token && token.version >= (newest.get(token.tokenId)?.version ?? 0)) newest.set(token.tokenId, token);
  }
  return [...newest.values()];
}

/** The oldest balance before a charge of these searches; undefined without a charge. */
function oldestBefore(searches: readonly DecidedSearch[]): VersionedBalance | undefined {
  const all = searches.flatMap(({ decision }) => decision.before ?? []);
  return all.length === 0 ? undefined : all.reduce((oldest, next) => (next.version < oldest.version ? next : oldest));
}

function holdEnd({ request, outcome, decision, ifCharged, callerDisconnected, ...search }: DecidedSearch): HoldEnd[] {
  const { requestId, key } = request;
  const calls = endedCalls(search.calls, decision);
  if (outcome.kind === "answer") return [{ requestId, key, answered: true, calls }];
  const isPaid = decision.kind === "charge" || decision.reason === "already_paid";
  if (!isPaid) {
    // A search that had ended in another way was not cancelled: its worker has dropped the hold, or is about to.
    const isLeft = callerDisconnected && decision.reason === "caller_disconnected";
    return [{ requestId, key, failure: serializeFailure(outcome.code, outcome.details), isLeft, calls }];
  }
  return ifCharged === "end_hold" ? [{ requestId, key }] : [];
}
