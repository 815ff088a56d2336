import { setTimeout as sleep } from "node:timers/promises";
import { formatTable } from "../harness/format-table.ts";
import type { CaseLoad, Contestant } from "./contestants/contestant.ts";
import { openPostgres } from "./contestants/durable-servers.ts";
import { openSerpmill } from "./contestants/serpmill.ts";
import { openYardstick } from "./contestants/yardstick.ts";
import { measureIdle, measureRound } from "./measure-round.ts";
import { dashed, dotted, drawLatency } from "./latency-picture.ts";
import { describeRound, formatFigure, formatNumber, ratioOf } from "./report.ts";
import { type Idle, type Measured, medianOf, type Round, serviceCpuUs } from "./results.ts";
import { type LoadOptions, type Run, withPart } from "./run.ts";

const providerMs = 500;
/** Searches a second, at which arrivals are even. */
const evenRates = [10, 50, 100, 200, 400];
/** From one rate to another at once. The first one comes after a pause. */
const steps = [
  { from: 0, to: 200 },
  { from: 200, to: 400 },
];
/** Pairs of an API and a worker. */
const pairCounts = [1, 3];
const connections = 1_000;
const warmUpSeconds = 3;
const firstWarmUp = { ratePerSecond: 200, seconds: 4 };
const idleSeconds = 5;
// After which a worker has given up the slots that it does not need.
const pauseSeconds = 6;

/** What a load measures. */
interface Arrivals {
  case: string;
  load: Pick<CaseLoad, "ratePerSecond" | "leadRatePerSecond" | "leadSeconds">;
}

const arrivals: readonly Arrivals[] = [
  ...evenRates.map((ratePerSecond) => ({
    case: `${ratePerSecond}/s`,
    load: { ratePerSecond, leadSeconds: warmUpSeconds },
  })),
  ...steps.map(({ from, to }) => ({
    case: `${from} to ${to}/s`,
    load: { ratePerSecond: to, ...(from > 0 && { leadSeconds: warmUpSeconds, leadRatePerSecond: from }) },
  })),
];

/**
 * Measures searches that come at fixed intervals, and so alone as long as the service keeps up, over one and three pairs of
 * processes with their default limits, and a provider that takes 500 ms. The contestants take turns.
 */
export async function measureEven(run: Run, { rounds, seconds, yardstick }: LoadOptions): Promise<Measured[]> {
  const postgres = await openPostgres(run.shutdown);
  const measured: Measured[] = [];
  for (const pairs of pairCounts) {
    await withPart(run, async (shutdown) => {
      const stage = { apis: pairs, workers: pairs, providerMs, hasDefaultLimits: true };
      const { generator } = run;
      run.say(`starting ${pairs} API and ${pairs} worker processes`);
      const contestants: Contestant[] = [await openSerpmill({ stage, postgres, generator, shutdown })];
      if (yardstick !== undefined) contestants.push(await openYardstick(yardstick, generator, shutdown, stage));
      for (const contestant of contestants) {
        await measureRound(contestant, { ...usual, ...firstWarmUp });
        const idle = await measureIdle(contestant, idleSeconds);
        for (const one of arrivals)
          measured.push({
            case: caseName(pairs, one.case),
            contestant: contestant.name,
            ...(one.load.ratePerSecond !== undefined && { ratePerSecond: one.load.ratePerSecond }),
            providerMs,
            idle,
            rounds: [],
          });
      }
      const own = measured.slice(-arrivals.length * contestants.length);
      for (let round = 1; round <= rounds; round += 1)
        for (const [at, one] of arrivals.entries())
          for (const [which, contestant] of contestants.entries()) {
            if (one.load.leadSeconds === undefined) await sleep(pauseSeconds * 1_000);
            const figures = await measureRound(contestant, { ...usual, ...one.load, seconds });
            const target = own[which * arrivals.length + at];
            target?.rounds.push(figures);
            run.say(`${target?.case}, round ${round} of ${rounds}, ${contestant.name}: ${describeRound(figures)}`);
          }
    });
  }
  return measured;
}

const caseName = (pairs: number, arrival: string) => `${pairs} × ${pairs}, ${arrival}`;

const usual = { request: "search", callers: "hundred", status: 200, connections } as const;

type Kind = "api" | "worker" | "redis" | "postgres";
const kinds: readonly Kind[] = ["api", "worker", "redis", "postgres"];

/** A figure of the rounds of one measurement; undefined if it was not measured. */
type EvenFigure = (one: Measured) => number | undefined;

const addedP50Ms: EvenFigure = (one) => (medianOf(one, ({ p50Ms }) => p50Ms) ?? 0) - providerMs;
const addedP99Ms: EvenFigure = (one) => (medianOf(one, ({ p99Ms }) => p99Ms) ?? 0) - providerMs;

/** What a search takes beyond what idle processes take in the time between two arrivals. */
function beyondIdle(figure: (round: Round) => number | undefined, idlePerSecond: (idle: Idle) => number): EvenFigure {
  return (one) => {
    const all = medianOf(one, figure);
    return all === undefined ? undefined : all - (one.idle ? idlePerSecond(one.idle) : 0) / (one.ratePerSecond ?? 1);
  };
}

const cpuUs = beyondIdle(serviceCpuUs, ({ cpuUsPerSecond }) =>
  kinds.reduce((sum, kind) => sum + (cpuUsPerSecond[kind] ?? 0), 0),
);

const evenFigures: readonly [title: string, figure: EvenFigure, isCompared?: true][] = [
  ["added p50 ms", addedP50Ms, true],
  ["added p99 ms", addedP99Ms, true],
  ["CPU µs: all", cpuUs, true],
  ...kinds.map((kind): [string, EvenFigure] => [
    kind,
    beyondIdle(
      ({ cpuUs: of }) => of[kind],
      ({ cpuUsPerSecond }) => cpuUsPerSecond[kind] ?? 0,
    ),
  ]),
  [
    "Redis reads",
    beyondIdle(
      ({ redisReads }) => redisReads,
      ({ redisReadsPerSecond }) => redisReadsPerSecond,
    ),
  ],
  [
    "Redis commands",
    beyondIdle(
      ({ redisCommands }) => redisCommands,
      ({ redisCommandsPerSecond }) => redisCommandsPerSecond,
    ),
  ],
];

/**
 * The tables of {@link measureEven}: latency beyond the provider's, and the cost of a search beyond that of idle processes, with
 * the slowest and the fastest round; some also relative to the yardstick. Then what idle processes take.
 */
export function evenReport(measured: readonly Measured[]): string {
  const titles = evenFigures.flatMap(([title, , isCompared]) => (isCompared ? [title, "× yardstick"] : [title]));
  const rows = measured.map((one) => {
    const rival = measured.find((other) => other.case === one.case && other.contestant === "yardstick");
    const p99s = one.rounds.map(({ p99Ms }) => p99Ms - providerMs);
    const figures = evenFigures.flatMap(([, figure, isCompared]) => {
      const ratio = rival && rival !== one ? ratioOf(figure(rival), figure(one)) : undefined;
      return isCompared ? [figure(one), ratio] : [figure(one)];
    });
    const spread = `${formatNumber(Math.min(...p99s))}–${formatNumber(Math.max(...p99s))}`;
    return [one.case, one.contestant, ...figures.map(formatFigure), spread];
  });
  return `${formatTable(["arrivals", "contestant", ...titles, "p99 from–to"], rows)}\n${idleTable(measured)}`;
}

/** Draws what one pair of processes adds at each rate, and the CPU of a search, as an SVG. */
export function drawEven(measured: readonly Measured[]): string {
  const usPerMs = 1_000;
  const atRates = measured.filter(({ case: name }) => evenRates.some((rate) => name === caseName(1, `${rate}/s`)));
  return drawLatency(atRates, [
    { name: "p50", figure: addedP50Ms, dashes: "" },
    { name: "p99", figure: addedP99Ms, dashes: dashed },
    { name: "CPU", figure: (one) => (cpuUs(one) ?? 0) / usPerMs, dashes: dotted },
  ]);
}

/** What idle processes take. */
function idleTable(measured: readonly Measured[]): string {
  const usPerMs = 1_000;
  const titles = [
    "processes",
    "contestant",
    ...kinds.map((kind) => `${kind}: CPU ms a second`),
    "Redis reads a second",
  ];
  const first = measured.filter(({ case: name }) => name.endsWith(arrivals[0]?.case ?? ""));
  const rows = first.map(({ case: name, contestant, idle }) => [
    name.split(",")[0] ?? "",
    contestant,
    ...kinds.map((kind) => formatFigure((idle?.cpuUsPerSecond[kind] ?? 0) / usPerMs)),
    formatFigure(idle?.redisReadsPerSecond),
  ]);
  return formatTable(titles, rows);
}
