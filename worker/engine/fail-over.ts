import { setTimeout as sleep } from "node:timers/promises";
import type { Query } from "../../shared/query.ts";
import type { Asker } from "./ask.ts";
import type { Line, Outcome } from "./line.ts";
import type { Failure, Page } from "./provider.ts";
import { fetchFirst, fetchOthers, giveUp, roomMsMin, type Trace, type Visit } from "./visit.ts";

// Of the time that is left, as long as somebody else could still be asked: a provider that hangs leaves the rest to the next.
const shareOfTimeMax = 2 / 3;

/** One search and those who may be asked, in the order in which they are. */
export type Errand = {
  lines: readonly Line[];
  asker: Asker;
  query: Query;
  deadlineAt: number;
  /** Milliseconds after which the next one is asked as well, while the first is still silent; 0 for never. */
  hedgeAfterMs: number;
  trace: Trace;
};

type First = { visit: Visit; page: Outcome };
type Running = Map<Visit, Promise<First>>;

/**
 * Asks one provider after the other until one has answered in full, while the deadline leaves room. The first one that
 * is slow may be hedged: the next one is asked as well, and whoever answers first is taken.
 * @returns all pages of one provider, or the failures in the order in which they came.
 */
export async function askInTurn(errand: Errand): Promise<{ pages: Page[] } | { failures: Failure[] }> {
  const failures: Failure[] = [];
  const running: Running = new Map();
  let asked = 0;
  let mayBeSlow = errand.hedgeAfterMs > 0;
  const begin = () => {
    const visit = visitOf(errand, asked);
    asked += 1;
    if (!visit) return false;
    errand.trace.provider = visit.line.provider.name;
    running.set(
      visit,
      fetchFirst(visit).then((page) => ({ visit, page })),
    );
    return true;
  };

  for (;;) {
    const hasTime = failures.length === 0 || hasTimeFor(errand);
    if (running.size === 0 && !(hasTime && begin())) return { failures };
    const first = await (mayBeSlow ? firstOrSlow(running, errand.hedgeAfterMs) : firstOf(running));
    if (first === "slow") {
      mayBeSlow = !(mayHedge(errand, asked) && begin());
      continue;
    }
    running.delete(first.visit);
    const pages = "failure" in first.page ? first.page : await goOnAlone(first.visit, first.page, running);
    if (!("failure" in pages)) {
      errand.trace.provider = first.visit.line.provider.name;
      return { pages };
    }
    failures.push(pages);
  }
}

function visitOf({ lines, asker, query, deadlineAt, trace }: Errand, index: number): Visit | undefined {
  const line = lines[index];
  if (!line) return undefined;
  const remainingMs = deadlineAt - performance.now();
  const isLast = index === lines.length - 1;
  const attemptMsMax = Math.min(line.provider.attemptMsMax, isLast ? remainingMs : remainingMs * shareOfTimeMax);
  return { line, asker, query, deadlineAt, attemptMsMax, stop: new AbortController(), trace };
}

/** The next one has to be ready, and a hedge is one of its second calls; where it has none left, it is looked at again. */
function mayHedge(errand: Errand, asked: number): boolean {
  const next = errand.lines[asked];
  return next?.standing() === 0 && hasTimeFor(errand) && next.retries.spend();
}

function hasTimeFor({ deadlineAt }: Errand): boolean {
  return deadlineAt - performance.now() >= roomMsMin;
}

function firstOf(running: Running): Promise<First> {
  return Promise.race(running.values());
}

async function firstOrSlow(running: Running, ms: number): Promise<First | "slow"> {
  const answered = new AbortController();
  const slow = sleep(ms, "slow" as const, { signal: answered.signal }).catch(() => "slow" as const);
  try {
    return await Promise.race([firstOf(running), slow]);
  } finally {
    answered.abort();
  }
}

/** Goes on with the one that answered first. Another one has been outrun, which counts against it. */
async function goOnAlone(visit: Visit, first: Page, others: Running): Promise<Page[] | Failure> {
  for (const outrun of others.keys()) giveUp(outrun, "outrun");
  await Promise.all(others.values());
  others.clear();
  return fetchOthers(visit, first);
}
