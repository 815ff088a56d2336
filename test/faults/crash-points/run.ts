import type { Row, Say } from "../report.ts";
import { audit, comeToRest } from "./books.ts";
import { type Case, cases } from "./cases.ts";
import { IsolatedStack } from "./isolated-stack.ts";
import { CaseRun } from "./case-run.ts";

const promises = {
  answered: "answered, charged once",
  unanswered: "not answered, nothing charged",
  "in doubt": "answered, and given back: in doubt the caller keeps the mils",
};

/**
 * Plays every crash point whose name contains `only`, in so many services side by side, and checks the books after each.
 * @returns one row for each, in the order of the list.
 */
export async function runCrashPoints(options: {
  postgresUrl: string;
  only?: string | undefined;
  among?: readonly Case[];
  lanes: number;
  /** How long after its deadline an answer may come; 2 s unless the clock is not to be trusted. */
  lateMsMax?: number;
  say: Say;
}): Promise<Row[]> {
  const { postgresUrl, only = "", among = cases, lateMsMax = 2_000, say } = options;
  const chosen = among.filter(({ name }) => name.includes(only));
  const open = new Set<IsolatedStack>();
  const kill = () => {
    for (const lane of open) for (const place of lane.places) place.kill();
  };
  // Whoever interrupts the run leaves no process behind; the servers have guards of their own.
  const interrupt = (signal: NodeJS.Signals) => {
    kill();
    process.exit(signal === "SIGINT" ? 130 : 143);
  };
  process.on("exit", kill).on("SIGINT", interrupt).on("SIGTERM", interrupt);
  try {
    const inTurn = takeTurns();
    const rows = new Map<Case, Row>();
    // Those with long waits from one end, those with short ones from the other, so that a lane seldom has to change.
    const waiting = chosen.toSorted((one, other) => other.deadlineMs - one.deadlineMs);
    const lane = async (number: number) => {
      const next = () => (number % 2 === 0 ? waiting.shift() : waiting.pop());
      await runAll({ next, postgresUrl, lateMsMax, open, inTurn }, (one, row) => {
        rows.set(one, row);
        say(`${rows.size} of ${chosen.length}: ${row.held ? "held" : "BROKEN"}: ${row.what}: ${row.seen}`);
      });
    };
    await Promise.all(Array.from({ length: Math.min(options.lanes, chosen.length) }, (_, number) => lane(number)));
    return chosen.flatMap((one) => rows.get(one) ?? []);
  } finally {
    process.off("exit", kill).off("SIGINT", interrupt).off("SIGTERM", interrupt);
    await Promise.all([...open].map((lane) => lane.close()));
  }
}

/** One case after the other in one service; another service where the wait is another, or where one case did harm. */
async function runAll(
  options: {
    next: () => Case | undefined;
    postgresUrl: string;
    lateMsMax: number;
    open: Set<IsolatedStack>;
    inTurn: InTurn;
  },
  tell: (one: Case, row: Row) => void,
): Promise<void> {
  const { next, postgresUrl, lateMsMax, open, inTurn } = options;
  let lane: IsolatedStack | undefined;
  const enter = (deadlineMs: number) =>
    inTurn(async () => {
      const opened = await IsolatedStack.open(postgresUrl, deadlineMs);
      open.add(opened);
      await opened.ready();
      return opened;
    });
  const leave = async () => {
    if (!lane) return;
    await lane.close();
    open.delete(lane);
    lane = undefined;
  };
  for (let one = next(); one; one = next()) {
    if (lane && lane.deadlineMs !== one.deadlineMs) await leave();
    lane ??= await enter(one.deadlineMs);
    const row = await runOne(lane, one, lateMsMax);
    tell(one, row);
    if (!row.held) await leave();
  }
  await leave();
}

type InTurn = <T>(step: () => Promise<T>) => Promise<T>;

/** One after the other, so that the machine does not have to start everything at the same moment. */
function takeTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (step) => {
    const done = last.then(step);
    last = done.catch(() => undefined);
    return done;
  };
}

async function runOne(lane: IsolatedStack, one: Case, lateMsMax: number): Promise<Row> {
  const what = one.name;
  const promised = promises[one.ends];
  let play: CaseRun | undefined;
  try {
    await lane.ready();
    play = new CaseRun(lane, one, await lane.customer({ cold: one.plot === "cold" }));
    await play.run();
    await comeToRest(play);
    const { broken, seen } = await audit(play, lateMsMax);
    return { what, promised, seen: [seen, ...broken].join("; "), held: broken.length === 0 };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const told = `${play?.deaths.length ?? 0} deaths, ${play?.attempts.map(({ status }) => status).join() ?? ""}`;
    return { what, promised, seen: `not played to its end: ${message.slice(0, 300)} (${told})`, held: false };
  } finally {
    play?.holds.stop();
  }
}
