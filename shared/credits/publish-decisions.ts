import type { Redis } from "ioredis";
import { type SearchOutcome, type SearchTrace, sendReply, serializeFailure } from "../queue/replies.ts";
import { type HoldEnd, settleHolds } from "./holds.ts";
import type { Decision, SettlementRequest } from "./ledger.ts";
import { endedCalls, type PayableCalls, type SearchCalls } from "./unpaid-calls.ts";
import { newestBalance, type TokenSpending } from "./versioned-balance.ts";

/** A search that Postgres has decided, with what Redis has to be given. */
export interface DecidedSearch {
  request: SettlementRequest;
  decision: Decision;
  outcome: SearchOutcome;
  reply?: { inbox: string; trace: SearchTrace; payable?: PayableCalls | undefined } | undefined;
  ifCharged: "keep_hold" | "end_hold";
  isAbandoned?: boolean | undefined;
  calls?: SearchCalls | undefined;
}

/** What became of decided searches in Redis. The unpublished ones are to be published again. */
export interface Publication<Search> {
  /** Provider calls that were counted as unpaid. */
  unpaidCalls: number;
  published: Search[];
  unpublished: { search: Search; error: Error }[];
}

/**
 * Publishes decisions in Redis: for each organization settle.lua drops the holds, stores the balance and ends the records of
 * keys; then the replies are sent. All of it leaves this process at once. Publishing twice has no further effect.
 * @returns what Redis took and what it did not. If the script of one organization fails, only the searches of that
 *   organization are unpublished, and a search whose reply was sent comes back without it.
 */
export async function publishDecisions<Search extends DecidedSearch>(
  redis: Redis,
  decided: readonly Search[],
): Promise<Publication<Search>> {
  const organizations = [...Map.groupBy(decided, (search) => search.request.organizationId)];
  const settled = organizations.map(([organizationId, searches]) => {
    const balance = newestBalance(searches.map((search) => search.decision.balance));
    return settleHolds(redis, organizationId, balance, searches.flatMap(holdEnd), newestOfTokens(searches));
  });
  const replied = decided.map(async ({ reply, request, outcome }) => {
    if (reply) await sendReply(redis, { ...reply, requestId: request.requestId, outcome });
  });

  const [ends, replies] = await Promise.all([Promise.allSettled(settled), Promise.allSettled(replied)]);
  const failures = new Map<Search, Error>();
  for (const [at, end] of ends.entries()) {
    if (end.status === "fulfilled") continue;
    for (const search of organizations[at]?.[1] ?? []) failures.set(search, toError(end.reason));
  }
  const unanswered = new Set<Search>();
  for (const [at, reply] of replies.entries()) {
    const search = decided[at];
    if (reply.status === "fulfilled" || !search) continue;
    failures.set(search, toError(reply.reason));
    unanswered.add(search);
  }
  return {
    unpaidCalls: ends.reduce((sum, end) => sum + (end.status === "fulfilled" ? end.value : 0), 0),
    published: decided.filter((search) => !failures.has(search)),
    unpublished: [...failures].map(([search, error]) => ({
      search: unanswered.has(search) ? search : { ...search, reply: undefined },
      error,
    })),
  };
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

const toError = (reason: unknown) => (reason instanceof Error ? reason : new Error(String(reason)));

function holdEnd({ request, outcome, decision, ifCharged, isAbandoned, ...search }: DecidedSearch): HoldEnd[] {
  const { requestId, key } = request;
  const calls = endedCalls(search.calls, decision);
  if (outcome.kind === "answer") return [{ requestId, key, answered: true, calls }];
  const isPaid = decision.kind === "charge" || decision.reason === "already_paid";
  if (!isPaid) {
    // A search that had ended in another way was not abandoned: its worker has dropped the hold, or is about to.
    const isLeft = isAbandoned && decision.reason === "caller_gone";
    return [{ requestId, key, failure: serializeFailure(outcome.code, outcome.details), isLeft, calls }];
  }
  return ifCharged === "end_hold" ? [{ requestId, key }] : [];
}
