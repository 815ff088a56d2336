import type { Redis } from "ioredis";
import { appendReplies, type SearchOutcome, type SearchTrace, serializeFailure } from "../queue/replies.ts";
import { execEach } from "../redis/pipeline.ts";
import { type HoldEnd, settleHolds } from "./holds.ts";
import type { Decision, SettlementRequest } from "./ledger.ts";
import { newestBalance } from "./versioned-balance.ts";

/** A search that Postgres has decided, with what Redis has to be given. */
export interface DecidedSearch {
  request: SettlementRequest;
  decision: Decision;
  outcome: SearchOutcome;
  reply?: { inbox: string; trace: SearchTrace } | undefined;
  ifCharged: "keep_hold" | "end_hold";
  isAbandoned?: boolean | undefined;
}

/** What became of decided searches in Redis. The unpublished ones are to be published again. */
export interface Publication<Search> {
  published: Search[];
  unpublished: { search: Search; error: Error }[];
}

/**
 * Publishes decisions in Redis, in one pipeline: for each organization a settle.lua, which drops the holds, stores the
 * balance and ends the records of keys, and then the replies. Publishing twice has no further effect.
 * @returns what Redis took and what it did not. If the script of one organization fails, only the searches of that
 *   organization are unpublished, and a search whose reply was sent comes back without it.
 */
export async function publishDecisions<Search extends DecidedSearch>(
  redis: Redis,
  decided: readonly Search[],
): Promise<Publication<Search>> {
  if (decided.length === 0) return { published: [], unpublished: [] };
  const organizations = [...Map.groupBy(decided, (search) => search.request.organizationId)];
  const answering = decided.filter(({ reply }) => reply);
  const pipeline = redis.pipeline();
  for (const [organizationId, searches] of organizations) {
    const balance = newestBalance(searches.map((search) => search.decision.balance));
    void settleHolds(pipeline, organizationId, balance, searches.flatMap(holdEnd));
  }
  appendReplies(pipeline, answering.flatMap(toReply));
  const results = await execEach(pipeline);

  const errorAt = (at: number) => {
    const result = results[at];
    return result ? result.error : new Error("Redis did not run a command of a pipeline");
  };
  const failures = new Map<Search, Error>();
  const unanswered = new Set<Search>();
  for (const [at, [, searches]] of organizations.entries()) {
    const error = errorAt(at);
    if (error) for (const search of searches) failures.set(search, error);
  }
  for (const [at, search] of answering.entries()) {
    const error = errorAt(organizations.length + at);
    if (error) failures.set(search, error);
    if (error) unanswered.add(search);
  }
  return {
    published: decided.filter((search) => !failures.has(search)),
    unpublished: [...failures].map(([search, error]) => ({
      search: unanswered.has(search) ? search : { ...search, reply: undefined },
      error,
    })),
  };
}

const toReply = ({ reply, request, outcome }: DecidedSearch) =>
  reply ? [{ ...reply, requestId: request.requestId, outcome }] : [];

function holdEnd({ request, outcome, decision, ifCharged, isAbandoned }: DecidedSearch): HoldEnd[] {
  const { requestId, key } = request;
  if (outcome.kind === "answer") return [{ requestId, key, answered: true }];
  const isPaid = decision.kind === "charge" || decision.reason === "already_paid";
  if (!isPaid) {
    // A search that had ended in another way was not abandoned: its worker has dropped the hold, or is about to.
    const abandoned = isAbandoned && decision.reason === "caller_gone" ? ("running" as const) : undefined;
    return [{ requestId, key, failure: serializeFailure(outcome.code, outcome.details), abandoned }];
  }
  return ifCharged === "end_hold" ? [{ requestId, key }] : [];
}
