import { setTimeout as sleep } from "node:timers/promises";
import type { Query } from "../../query/query.ts";
import type { ProviderHttp } from "./http.ts";
import type { ProviderPolicy } from "./provider-policy.ts";
import type { Failure, Page } from "../provider.ts";
import { fetchPages, cancelAttempt, minAttemptMs, type Trace, type ProviderAttempt } from "./provider-attempt.ts";

// Of the time that is left, as long as somebody else could still be asked: a provider that takes long, with all its pages and
// second calls, leaves the rest to the next.
const shareOfTimeMax = 2 / 3;

/** One search and those who may be asked, in the order in which they are. */
export type FailoverRequest = {
  lines: readonly ProviderPolicy[];
  asker: ProviderHttp;
  query: Query;
  deadlineAt: number;
  /** Milliseconds after which the next one is asked as well, while the first is still silent; 0 for never. */
  hedgeAfterMs: number;
  trace: Trace;
};

type Ended = { visit: ProviderAttempt; pages: Page[] | Failure };
type Running = Map<ProviderAttempt, Promise<Ended>>;

/** Why nobody has answered: the failures in the order in which they came, and whether there was no time to ask all. */
export type FailoverFailure = { failures: Failure[]; isCutShort: boolean };

/**
 * Asks one provider after the other until one has answered in full, while the deadline leaves room. The first one that
 * is slow may be hedged: the next one is asked as well, and whoever answers first is taken. The other one, if it was asked
 * before, has been outrun, which counts against it. It is asked again, last, where the one that was faster fails after all.
 * @returns all pages of one provider, or why there are none.
 */
export async function fetchWithFailover(errand: FailoverRequest): Promise<{ pages: Page[] } | FailoverFailure> {
  const failures: Failure[] = [];
  const running: Running = new Map();
  const left = [...errand.lines];
  let mayBeSlow = errand.hedgeAfterMs > 0;
  const begin = () => {
    const line = hasTimeFor(errand) && left.shift();
    if (!line) return false;
    const visit = openVisit(errand, line, left.length === 0);
    errand.trace.provider = line.provider.name;
    const pages = fetchPages(visit, () => outrunOthers(visit, running));
    running.set(
      visit,
      pages.then((ended) => ({ visit, pages: ended })),
    );
    return true;
  };

  for (;;) {
    if (running.size === 0 && !begin()) return { failures, isCutShort: left.length > 0 };
    const ended = await (mayBeSlow ? firstOrSlow(running, errand.hedgeAfterMs) : firstOf(running));
    if (ended === "slow") {
      mayBeSlow = !(isSilent(running) && hasTimeFor(errand) && mayHedge(left[0]) && begin());
      continue;
    }
    const { visit, pages } = ended;
    running.delete(visit);
    if (!("failure" in pages)) {
      await Promise.all(running.values());
      errand.trace.provider = visit.line.provider.name;
      return { pages };
    }
    if (pages.failure === "outrun" || pages.failure === "unneeded") left.push(visit.line);
    else failures.push(pages);
  }
}

function openVisit(
  { asker, query, deadlineAt, trace }: FailoverRequest,
  line: ProviderPolicy,
  isLast: boolean,
): ProviderAttempt {
  const now = performance.now();
  const ownDeadlineAt = isLast ? deadlineAt : now + (deadlineAt - now) * shareOfTimeMax;
  return { line, asker, query, deadlineAt: ownDeadlineAt, stop: new AbortController(), isAnswering: false, trace };
}

/** Only those that were asked before have been slower. */
function outrunOthers(first: ProviderAttempt, running: Running): void {
  let kind: "outrun" | "unneeded" = "outrun";
  for (const visit of running.keys()) {
    if (visit === first) kind = "unneeded";
    else cancelAttempt(visit, kind);
  }
}

function isSilent(running: Running): boolean {
  return ![...running.keys()].some(({ isAnswering }) => isAnswering);
}

/** The next one has to be ready, and a hedge is one of its second calls; where it has none left, it is looked at again. */
function mayHedge(next: ProviderPolicy | undefined): boolean {
  return next?.availability() === 0 && next.retries.spend();
}

function hasTimeFor({ deadlineAt }: FailoverRequest): boolean {
  return deadlineAt - performance.now() >= minAttemptMs;
}

function firstOf(running: Running): Promise<Ended> {
  return Promise.race(running.values());
}

async function firstOrSlow(running: Running, ms: number): Promise<Ended | "slow"> {
  const answered = new AbortController();
  const slow = sleep(ms, "slow" as const, { signal: answered.signal }).catch(() => "slow" as const);
  try {
    return await Promise.race([firstOf(running), slow]);
  } finally {
    answered.abort();
  }
}
