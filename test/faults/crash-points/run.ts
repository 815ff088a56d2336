import { Semaphore } from "../../../shared/concurrency/semaphore.ts";
import type { Row, Say } from "../report.ts";
import { untilAtRest } from "../audit/rest.ts";
import { auditCase } from "./case-audit.ts";
import { CaseRun } from "./case-run.ts";
import { type Case, cases } from "./cases.ts";
import { IsolatedStack } from "./isolated-stack.ts";

// How long an API that runs may need on a slow machine to confirm what it delivered. One that died leaves charges unconfirmed.
const confirmMsMax = 10_000;
const confirmAfterDeathMsMax = 1_500;

const promises = {
  answered: "answered, charged once",
  unanswered: "not answered, nothing charged",
  "in doubt": "answered and reversed: in doubt the caller keeps the mils",
};

/**
 * Runs every crash point whose name contains `only`, in parallel isolated stacks, and audits each.
 * @returns a row for each, in the order of the list.
 */
export async function runCrashPoints(options: {
  postgresUrl: string;
  only?: string | undefined;
  among?: readonly Case[];
  /** The number of parallel stacks. */
  stacks: number;
  /** How long after its deadline an answer may arrive; 2 s by default. */
  lateMsMax?: number;
  /** Whether a case that did not hold beside others runs once more alone, and then has the outcome of that run. */
  retry?: boolean | undefined;
  say: Say;
}): Promise<Row[]> {
  const { postgresUrl, only = "", among = cases, lateMsMax = 2_000, retry = false, say } = options;
  const chosen = among.filter(({ name }) => name.includes(only));
  const rows = new Map<Case, Row>();
  const openings = new Semaphore();
  // Half of the stacks start with the long deadlines and half with the short ones, so that stacks are seldom replaced.
  const waiting = chosen.toSorted((one, other) => other.deadlineMs - one.deadlineMs);
  const work = (next: () => Case | undefined) =>
    runAll(
      { next, open: (deadlineMs) => openings.run(() => openReady(postgresUrl, deadlineMs)), lateMsMax },
      (one, row) => {
        rows.set(one, row);
        say(`${rows.size} of ${chosen.length}: ${row.held ? "held" : "BROKEN"}: ${row.what}: ${row.seen}`);
      },
    );
  const fromBothEnds = [() => waiting.shift(), () => waiting.pop()];
  const stacks = Math.min(options.stacks, chosen.length);
  await Promise.all(Array.from({ length: stacks }, (_, number) => work(() => fromBothEnds[number % 2]?.())));
  const broken = retry ? chosen.filter((one) => rows.get(one)?.held === false) : [];
  await work(() => broken.shift());
  return chosen.flatMap((one) => rows.get(one) ?? []);
}

/** Runs one case after the other in one stack. It opens a new stack if the deadline differs or a case failed. */
async function runAll(
  options: { next: () => Case | undefined; open: (deadlineMs: number) => Promise<IsolatedStack>; lateMsMax: number },
  report: (one: Case, row: Row) => void,
): Promise<void> {
  let stack: IsolatedStack | undefined;
  const close = async () => {
    await stack?.close();
    stack = undefined;
  };
  try {
    for (let one = options.next(); one; one = options.next()) {
      if (stack?.deadlineMs !== one.deadlineMs) await close();
      stack ??= await options.open(one.deadlineMs);
      const row = await runOne(stack, one, options.lateMsMax);
      report(one, row);
      if (!row.held) await close();
    }
  } finally {
    await close();
  }
}

async function openReady(postgresUrl: string, deadlineMs: number): Promise<IsolatedStack> {
  const stack = await IsolatedStack.open(postgresUrl, deadlineMs);
  await stack.ready().catch(async (error: unknown) => {
    await stack.close();
    throw error;
  });
  return stack;
}

/** Runs steps one after the other, so that not all stacks start at once. */
async function runOne(stack: IsolatedStack, one: Case, lateMsMax: number): Promise<Row> {
  const what = one.name;
  const promised = promises[one.ends];
  let run: CaseRun | undefined;
  try {
    await stack.ready();
    run = new CaseRun(stack, one, await stack.customer({ cold: one.plot === "cold" }));
    await run.run();
    const confirmsAll = run.deaths.every(({ kind }) => kind === "worker");
    await untilAtRest(
      stack.service,
      [run.customer.organizationId],
      confirmsAll ? confirmMsMax : confirmAfterDeathMsMax,
    );
    const { broken, seen } = await auditCase(run, lateMsMax);
    return { what, promised, seen: [seen, ...broken].join("; "), held: broken.length === 0 };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const statuses = run?.attempts.map(({ answer, noAnswer }) => answer?.status ?? noAnswer).join() ?? "";
    const progress = `${run?.deaths.length ?? 0} deaths, answers: ${statuses || "none"}`;
    return { what, promised, seen: `did not finish: ${message.slice(0, 300)} (${progress})`, held: false };
  } finally {
    run?.holds.stop();
  }
}
