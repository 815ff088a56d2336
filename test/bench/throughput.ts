import type { Case } from "./cases.ts";
import { openBullmq } from "./contestants/bullmq.ts";
import { openPostgres } from "./contestants/durable-servers.ts";
import type { CaseLoad, Contestant } from "./contestants/contestant.ts";
import { openSerpmill, type SerpmillParts, type Stage } from "./contestants/serpmill.ts";
import { openYardstick } from "./contestants/yardstick.ts";
import { describeRound } from "./report.ts";
import { AnswersFailed, leadSecondsFor, measureRound } from "./measure-round.ts";
import type { Measured } from "./results.ts";
import { type LoadOptions, type Run, withPart } from "./run.ts";

// New processes first run interpreted code, which costs more. After that a case only has to fill its caches.
const firstWarmUp = { request: "search", callers: "hundred", status: 200, connections: 64 } as const;
const firstWarmUpSecondsMax = 3;
const warmUpSeconds = 1;
// With default limits, the simultaneous calls to a provider double each second, from 50 to 1,000.
const defaultLimitsWarmUpSeconds = 10;

export interface ThroughputOptions extends LoadOptions {
  cases: readonly Case[];
}

/**
 * Measures the cases. In each round those that need the same processes take turns, each with all of its contestants, so that
 * other work on the machine affects all of them. @throws {AnswersFailed} after the first answer with another status than the
 * case has.
 */
export async function measureThroughput(run: Run, options: ThroughputOptions): Promise<Measured[]> {
  const postgres = await openPostgres(run.shutdown);
  const warmUp = (contestant: Contestant) =>
    measureRound(contestant, { ...firstWarmUp, seconds: Math.min(firstWarmUpSecondsMax, options.seconds) });
  const others = new Others({ run, postgres, folder: options.yardstick, warmUp });
  const measured: Measured[] = [];
  for (const group of byStage(options.cases)) {
    const [{ stage }] = group;
    await withPart(run, async (shutdown) => {
      run.say(`starting ${stage.apis} API and ${stage.workers} worker processes`);
      const serpmill = await openSerpmill({ stage, postgres, generator: run.generator, shutdown });
      await warmUp(serpmill);
      const entries: Entry[] = [];
      for (const one of group)
        for (const contestant of [serpmill, ...(await others.beside(one, serpmill.answer))])
          entries.push({ one, contestant, rounds: [] });
      await measureInTurns(run, entries, options);
      for (const { one, contestant, rounds } of entries)
        measured.push({ case: one.name, contestant: contestant.name, rounds });
    });
  }
  return measured;
}

type Group = [Case, ...Case[]];

/** Consecutive cases that need the same processes. */
function byStage(cases: readonly Case[]): Group[] {
  const groups: Group[] = [];
  for (const one of cases) {
    const last = groups.at(-1);
    if (last && JSON.stringify(last[0].stage) === JSON.stringify(one.stage)) last.push(one);
    else groups.push([one]);
  }
  return groups;
}

interface OtherParts extends Pick<SerpmillParts, "postgres"> {
  run: Run;
  /** That of the yardstick, if there is one. */
  folder: string | undefined;
  warmUp: (contestant: Contestant) => Promise<unknown>;
}

/** The other contestants. Each is started by the first case that needs it, and runs until the end. */
class Others {
  readonly #parts: OtherParts;
  readonly #opened = new Map<string, Contestant>();

  constructor(parts: OtherParts) {
    this.#parts = parts;
  }

  /** @param answer the answer that bare BullMQ gives to every job. */
  async beside({ beside, stage }: Case, answer: unknown): Promise<Contestant[]> {
    const { run, folder, warmUp } = this.#parts;
    const contestants: Contestant[] = [];
    for (const name of beside) {
      if (name === "yardstick" && folder === undefined) continue;
      let opened = this.#opened.get(name);
      if (!opened) {
        run.say(`starting ${name}`);
        opened = await this.#open(name, stage, answer);
        await warmUp(opened);
        this.#opened.set(name, opened);
      }
      contestants.push(opened);
    }
    return contestants;
  }

  #open(name: Case["beside"][number], stage: Stage, answer: unknown): Promise<Contestant> {
    const { run, postgres, folder } = this.#parts;
    const { shutdown, generator } = run;
    if (name === "traced") return openSerpmill({ stage: { ...stage, isTraced: true }, postgres, generator, shutdown });
    return name === "yardstick" && folder !== undefined
      ? openYardstick(folder, generator, shutdown)
      : openBullmq(answer, shutdown);
  }
}

/** A case and a contestant. */
interface Entry {
  one: Case;
  contestant: Contestant;
  rounds: Measured["rounds"];
}

async function measureInTurns({ say }: Run, entries: readonly Entry[], options: ThroughputOptions): Promise<void> {
  const measure = ({ one, contestant }: Entry, load: Pick<CaseLoad, "seconds" | "mayRefuse" | "leadSeconds">) => {
    const { request, callers, status, connections } = one;
    return measureRound(contestant, { request, callers, status, connections, ...load }).catch(named(one, contestant));
  };
  for (const entry of entries) {
    const { hasDefaultLimits } = entry.one.stage;
    await measure(entry, { seconds: hasDefaultLimits ? defaultLimitsWarmUpSeconds : warmUpSeconds, mayRefuse: true });
  }
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const entry of entries) {
      const leadSeconds = leadSecondsFor(entry.one.stage.providerMs ?? 0);
      const figures = await measure(entry, { seconds: options.seconds, leadSeconds });
      entry.rounds.push(figures);
      const { one, contestant } = entry;
      say(`${one.name}, round ${round} of ${options.rounds}, ${contestant.name}: ${describeRound(figures)}`);
    }
  }
}

/** Adds the name of the failed case. */
const named =
  (one: Case, { name }: Contestant) =>
  (error: unknown) => {
    if (error instanceof AnswersFailed) throw new AnswersFailed(`${one.name}, ${name}: ${error.message}`);
    throw error;
  };
