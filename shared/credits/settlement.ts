import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import {
  appendReply,
  extendInboxTtl,
  type SearchOutcome,
  type SearchTrace,
  serializeFailure,
} from "../queue/replies.ts";
import { Batcher } from "../concurrency/batcher.ts";
import { isTransient } from "../database/failures.ts";
import type { Database } from "../database/pool.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { type HoldEnd, readRemembered, settleHolds } from "./holds.ts";
import { type Decision, decideEndings, type SettlementRequest } from "./ledger.ts";

/**
 * The end of a search, in the one order that survives everything: Postgres decides, then the hold is dropped and the key
 * remembers, then the answer travels. If the process dies after the first step, a second run finds the decision and
 * repeats the others; if nobody runs it again, the sweeper drops the hold and the reconciler gives back the charge.
 */

const batchSizeMax = 256;
const batchConcurrency = 2;
const retryPauseMs = 50;

/** A search to be ended. */
export interface SettleOptions {
  request: SettlementRequest;
  /** How long, in milliseconds, an unreachable Postgres or Redis is tried again. */
  retryForMs: number;
  /** What the caller is told, once it is decided. */
  toOutcome: (decision: Decision) => SearchOutcome;
  /** Where the outcome travels; absent where the process that settles is the one that answers. */
  reply?: { inbox: string; trace: SearchTrace } | undefined;
  /**
   * What to do with the hold where a failure meets an earlier charge. `leave` it to whoever charged, whose answer is on
   * its way; or `end` it and free its key, because nobody will bring that answer any more.
   */
  ifCharged: "leave" | "end";
}

export interface Settled {
  decision: Decision;
  outcome: SearchOutcome;
}

interface Pending extends SettleOptions {
  giveUpAtMs: number;
  resolve: (settled: Settled) => void;
  reject: (error: unknown) => void;
}

interface Decided extends Pending {
  decision: Decision;
  outcome: SearchOutcome;
}

export interface Settlement {
  /**
   * Ends one search, together with whatever else is ready.
   * @throws where Postgres could not be reached within the patience (nothing is known then), or refused the search.
   */
  settle(search: SettleOptions): Promise<Settled>;
  /** Resolves once everything handed in has ended. */
  idle(): Promise<void>;
}

export function openSettlement(options: { database: Database; redis: Redis; metrics: Metrics; log: Log }): Settlement {
  const { database, redis, metrics } = options;
  const warn = throttledWarning(options.log, "a settlement was not taken at once");

  async function run(batch: Pending[]): Promise<void> {
    const decided = await decideAll(batch);
    await again(decided, () => publish(redis, decided), warn);
    for (const search of decided) {
      if (search.decision.isNew) {
        metrics.settlements.inc({ kind: search.decision.kind, reason: search.decision.reason ?? "delivered" });
        metrics.chargedMils.inc(search.decision.chargedMils);
      }
      search.resolve({ decision: search.decision, outcome: search.outcome });
    }
  }

  async function decideAll(batch: Pending[]): Promise<Decided[]> {
    let open = batch;
    for (;;) {
      try {
        const stop = metrics.settlementBatch.startTimer();
        const decisions = await decideEndings(
          database,
          open.map((search) => search.request),
        );
        stop();
        return open.flatMap((search) => withOutcome(search, decisions.get(search.request.requestId)));
      } catch (error) {
        metrics.settlementRetries.inc();
        warn(error);
        // Refused for good: alone, each search shows whether it is the one at fault; the others go on.
        if (!isTransient(error) && open.length > 1)
          return (await Promise.all(open.map((one) => decideAll([one])))).flat();
        open = giveUp(open, error, isTransient(error));
        if (open.length === 0) return [];
        await sleep(retryPauseMs);
      }
    }
  }

  const batches = new Batcher<Pending>({ sizeMax: batchSizeMax, concurrency: batchConcurrency, run });
  return {
    settle: (search) =>
      new Promise((resolve, reject) => {
        batches.add({ ...search, giveUpAtMs: performance.now() + search.retryForMs, resolve, reject });
      }),
    idle: () => batches.idle(),
  };
}

function withOutcome(search: Pending, decision: Decision | undefined): Decided[] {
  if (decision) return [{ ...search, decision, outcome: search.toOutcome(decision) }];
  search.reject(new Error(`the organization of ${search.request.requestId} does not exist`));
  return [];
}

/** Rejects those whose patience is over, or all where a retry cannot help; returns the rest. */
function giveUp(open: Pending[], error: unknown, mayHelp: boolean): Pending[] {
  const now = performance.now();
  return open.filter((search) => {
    if (mayHelp && now < search.giveUpAtMs) return true;
    search.reject(error);
    return false;
  });
}

/** Runs a step that may be repeated until it succeeds, or until the most patient of the searches gives up. */
async function again(decided: Decided[], step: () => Promise<void>, warn: (error: unknown) => void): Promise<void> {
  const giveUpAtMs = Math.max(0, ...decided.map((search) => search.giveUpAtMs));
  for (;;) {
    try {
      await step();
      return;
    } catch (error) {
      warn(error);
      if (performance.now() >= giveUpAtMs) return; // The sweeper and the reconciler finish what Redis did not take.
      await sleep(retryPauseMs);
    }
  }
}

/**
 * One pipeline: a settle.lua per organization, then the answers of searches without a key. Those with a key follow in a
 * second one, because another run's answer may have been remembered first, and then that one is theirs.
 */
async function publish(redis: Redis, decided: Decided[]): Promise<void> {
  if (decided.length === 0) return;
  const organizations = [...Map.groupBy(decided, (search) => search.request.organizationId)].map(([id, searches]) => ({
    id,
    balance: newestBalance(searches),
    ended: searches.flatMap((search) => {
      const end = holdEnd(search);
      return end ? [{ search, end }] : [];
    }),
  }));
  const first = redis.pipeline();
  for (const { id, balance, ended } of organizations)
    void settleHolds(
      first,
      id,
      balance,
      ended.map(({ end }) => end),
    );
  sendReplies(
    first,
    decided.filter(({ request }) => !request.key),
  );
  const replies = await execute(first);

  const keyed = decided.filter((search) => search.request.key);
  if (keyed.length === 0) return;
  for (const [place, { ended }] of organizations.entries()) {
    for (const [at, remembered] of readRemembered(replies[place]).entries()) {
      const search = ended[at]?.search;
      if (!search || !remembered) continue;
      // A run of this very search left them: it is charged as this one was.
      const isOwn = remembered.requestId === search.request.requestId;
      search.outcome = { kind: "answer", ...remembered, chargedMils: isOwn ? search.decision.chargedMils : 0 };
    }
  }
  const second = redis.pipeline();
  sendReplies(second, keyed);
  if (second.length > 0) await execute(second);
}

const newestBalance = (searches: Decided[]) =>
  searches
    .map((search) => search.decision.balance)
    .reduce((newest, balance) => (balance.version > newest.version ? balance : newest));

function holdEnd({ request, outcome, decision, ifCharged }: Decided): HoldEnd | undefined {
  const { requestId, key } = request;
  if (outcome.kind === "answer") return { requestId, key, answer: outcome.body };
  const charged = decision.kind === "charge" || decision.reason === "already_paid";
  if (!charged) return { requestId, key, failure: serializeFailure(outcome.code, outcome.details) };
  return ifCharged === "end" ? { requestId, key } : undefined;
}

function sendReplies(on: ReturnType<Redis["pipeline"]>, searches: readonly Decided[]): void {
  const inboxes = new Set<string>();
  for (const { reply, request, outcome } of searches) {
    if (!reply) continue;
    appendReply(on, reply.inbox, request.requestId, outcome, reply.trace);
    inboxes.add(reply.inbox);
  }
  for (const inbox of inboxes) extendInboxTtl(on, inbox);
}

async function execute(pipeline: ReturnType<Redis["pipeline"]>): Promise<unknown[]> {
  const replies = (await pipeline.exec()) ?? [];
  return replies.map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
}
