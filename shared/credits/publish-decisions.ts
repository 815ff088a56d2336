import type { Redis } from "ioredis";
import { appendReplies, type SearchOutcome, type SearchTrace, serializeFailure } from "../queue/replies.ts";
import { type CommandResult, execEach } from "../redis/pipeline.ts";
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
  isAbandoned?: boolean | undefined;
}

/** What became of decided searches in Redis. The unpublished ones are to be published again. */
export interface Publication<Search> {
  published: Search[];
  unpublished: { search: Search; error: Error }[];
}

/**
 * Publishes decisions in Redis: drops the holds, stores the balances, remembers answers under their keys, and sends the
 * replies. One pipeline has a settle.lua for each organization and the replies of searches without a key. Replies of
 * searches with a key follow in a second one, because another run's answer may already be under the key, and then the
 * caller gets that one. Publishing twice has no further effect.
 * @returns what Redis took and what it did not. If the script of one organization fails, only the searches of that
 *   organization are unpublished, and a search whose reply was sent comes back without it.
 */
export async function publishDecisions<Search extends DecidedSearch>(
  redis: Redis,
  decided: readonly Search[],
): Promise<Publication<Search>> {
  if (decided.length === 0) return { published: [], unpublished: [] };
  const organizations = groupByOrganization(decided);
  const unkeyed = decided.filter((search) => search.reply && !hasKey(search));
  const first = redis.pipeline();
  for (const { id, balance, ended } of organizations) {
    const ends = ended.map(({ end }) => end);
    void settleHolds(first, id, balance, ends);
  }
  appendReplies(
    first,
    unkeyed.flatMap((search) => toReply(search, search.outcome)),
  );
  const results = await execEach(first);

  const failures = new Map<Search, Error>();
  const remembered = new Map<Search, RememberedAnswer>();
  for (const [at, { searches, ended }] of organizations.entries()) {
    const { error, reply } = results[at] ?? notRun;
    if (error) for (const search of searches) failures.set(search, error);
    else zip(ended, readRemembered(reply), ({ search }, answer) => answer && remembered.set(search, answer));
  }
  const sent = new Set<Search>();
  const note = (search: Search, { error }: CommandResult) => (error ? failures.set(search, error) : sent.add(search));
  zip(unkeyed, results.slice(organizations.length), note);

  const keyed = decided.filter((search) => search.reply && hasKey(search) && !failures.has(search));
  const second = redis.pipeline();
  appendReplies(
    second,
    keyed.flatMap((search) => toReply(search, ownOrFree(search, remembered.get(search)))),
  );
  if (keyed.length > 0) zip(keyed, await execEach(second), note);

  return {
    published: decided.filter((search) => !failures.has(search)),
    unpublished: [...failures].map(([search, error]) => ({
      search: sent.has(search) ? { ...search, reply: undefined } : search,
      error,
    })),
  };
}

type RememberedAnswer = { body: Buffer; requestId: string };

const notRun: CommandResult = { error: new Error("Redis did not run a command of a pipeline"), reply: undefined };

function groupByOrganization<Search extends DecidedSearch>(decided: readonly Search[]) {
  return [...Map.groupBy(decided, (search) => search.request.organizationId)].map(([id, searches]) => ({
    id,
    searches,
    balance: newestBalance(searches.map((search) => search.decision.balance)),
    ended: searches.flatMap((search) => {
      const end = holdEnd(search);
      return end ? [{ search, end }] : [];
    }),
  }));
}

/** Calls `see` with the elements at the same places, as far as both arrays go. */
function zip<A, B>(left: readonly A[], right: readonly B[], see: (left: A, right: B) => unknown): void {
  for (const [at, value] of left.entries()) {
    const other = right[at];
    if (other !== undefined) see(value, other);
  }
}

const hasKey = ({ request }: DecidedSearch) => request.key !== undefined;

const toReply = ({ reply, request }: DecidedSearch, outcome: SearchOutcome) =>
  reply ? [{ ...reply, requestId: request.requestId, outcome }] : [];

/** An answer that was under the key before. If an earlier run of this very search left it, this search paid for it. */
function ownOrFree({ request, decision, outcome }: DecidedSearch, before: RememberedAnswer | undefined): SearchOutcome {
  if (!before) return outcome;
  const isOwn = before.requestId === request.requestId;
  return { kind: "answer", ...before, chargedMils: isOwn ? decision.chargedMils : 0 };
}

function holdEnd({ request, outcome, decision, ifCharged, isAbandoned }: DecidedSearch): HoldEnd | undefined {
  const { requestId, key } = request;
  if (outcome.kind === "answer") return { requestId, key, answer: outcome.body };
  const isPaid = decision.kind === "charge" || decision.reason === "already_paid";
  if (!isPaid) {
    // A search that had ended in another way was not abandoned: its worker has dropped the hold, or is about to.
    const abandoned = isAbandoned && decision.reason === "caller_gone" ? ("running" as const) : undefined;
    return { requestId, key, failure: serializeFailure(outcome.code, outcome.details), abandoned };
  }
  return ifCharged === "end_hold" ? { requestId, key } : undefined;
}
