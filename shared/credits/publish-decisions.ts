import type { Redis } from "ioredis";
import { appendReplies, type SearchOutcome, type SearchTrace, serializeFailure } from "../queue/replies.ts";
import { execPipeline } from "../redis/pipeline.ts";
import { type HoldEnd, readRemembered, settleHolds } from "./holds.ts";
import type { Decision, SettlementRequest } from "./ledger.ts";
import { newestBalance } from "./versioned-balance.ts";

/** A search that Postgres has decided, with what Redis has to be given. */
export interface DecidedSearch {
  request: SettlementRequest;
  decision: Decision;
  outcome: SearchOutcome;
  reply?: { inbox: string; trace: SearchTrace } | undefined;
  ifCharged: "keep_hold" | "end_hold";
}

/**
 * Publishes decisions in Redis: drops the holds, stores the balances, remembers answers under their keys, and sends the
 * replies. One pipeline has a settle.lua for each organization and the replies of searches without a key. Replies of
 * searches with a key follow in a second one, because another run's answer may already be under the key, and then the
 * caller gets that one. Publishing twice has no further effect.
 * @throws if Redis refused a part of it, or is unreachable.
 */
export async function publishDecisions(redis: Redis, decided: readonly DecidedSearch[]): Promise<void> {
  if (decided.length === 0) return;
  const organizations = [...Map.groupBy(decided, (search) => search.request.organizationId)].map(([id, searches]) => ({
    id,
    balance: newestBalance(searches.map((search) => search.decision.balance)),
    ended: searches.flatMap((search) => {
      const end = holdEnd(search);
      return end ? [{ search, end }] : [];
    }),
  }));
  const [keyed, unkeyed] = [decided.filter(hasKey), decided.filter((search) => !hasKey(search))];
  const first = redis.pipeline();
  for (const { id, balance, ended } of organizations) {
    const ends = ended.map(({ end }) => end);
    void settleHolds(first, id, balance, ends);
  }
  appendReplies(first, unkeyed.flatMap(toReply));
  const replies = await execPipeline(first);

  const remembered = new Map(
    organizations.flatMap(({ ended }, at) =>
      readRemembered(replies[at]).map((answer, place) => [ended[place]?.search, answer] as const),
    ),
  );
  const second = redis.pipeline();
  const outcomes = keyed.map((search) => {
    const answer = remembered.get(search);
    return answer ? { ...search, outcome: ownOrFree(search, answer) } : search;
  });
  appendReplies(second, outcomes.flatMap(toReply));
  if (second.length > 0) await execPipeline(second);
}

const hasKey = ({ request }: DecidedSearch) => request.key !== undefined;

const toReply = ({ reply, request, outcome }: DecidedSearch) =>
  reply ? [{ ...reply, requestId: request.requestId, outcome }] : [];

/** An answer that was under the key before. If an earlier run of this very search left it, this search paid for it. */
function ownOrFree({ request, decision }: DecidedSearch, answer: { body: Buffer; requestId: string }): SearchOutcome {
  const isOwn = answer.requestId === request.requestId;
  return { kind: "answer", ...answer, chargedMils: isOwn ? decision.chargedMils : 0 };
}

function holdEnd({ request, outcome, decision, ifCharged }: DecidedSearch): HoldEnd | undefined {
  const { requestId, key } = request;
  if (outcome.kind === "answer") return { requestId, key, answer: outcome.body };
  const isPaid = decision.kind === "charge" || decision.reason === "already_paid";
  if (!isPaid) return { requestId, key, failure: serializeFailure(outcome.code, outcome.details) };
  return ifCharged === "end_hold" ? { requestId, key } : undefined;
}
