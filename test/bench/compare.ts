import { formatTable } from "../harness/format-table.ts";
import { formatFigure, ratioOf } from "./report.ts";
import { type Measured, medianOf, type Results, type Round, serviceCpuUs, spreadOf } from "./results.ts";

const figures: readonly [title: string, figure: (round: Round) => number | undefined][] = [
  ["p50", ({ p50Ms }) => p50Ms],
  ["p99", ({ p99Ms }) => p99Ms],
  ["CPU of all", serviceCpuUs],
  ["API", ({ cpuUs }) => cpuUs.api],
  ["worker", ({ cpuUs }) => cpuUs.worker],
  ["Redis", ({ cpuUs }) => cpuUs.redis],
  ["Postgres", ({ cpuUs }) => cpuUs.postgres],
  ["Redis commands", ({ redisCommands }) => redisCommands],
  ["statements", ({ postgresStatements }) => postgresStatements],
];

/**
 * What has changed between two runs, as ratios of their medians: 1.00 is no change. "beyond spread" says whether the slowest round
 * of the one is faster than the fastest of the other; without it, a ratio may be chance. One round has no spread. "against BullMQ"
 * divides both by what bare BullMQ got in the same run, so that a machine that was busier in one of them matters less.
 * @throws if no case is in both.
 */
export function compareResults(before: Results, after: Results): string {
  const pairs = after.measured.flatMap((now) => {
    const then = before.measured.find((one) => keyOf(one) === keyOf(now));
    return then ? [[then, now] as const] : [];
  });
  if (pairs.length === 0) throw new Error("The two files have no case in common.");
  const titles = [
    "case",
    "contestant",
    "searches/s",
    "beyond spread",
    "against BullMQ",
    ...figures.map(([title]) => title),
  ];
  const rows = pairs.map(([then, now]) => [
    now.shareOfPeak === undefined ? now.case : `${now.case} at ${Math.round(now.shareOfPeak * 100)} %`,
    now.contestant,
    ratioText(then, now, ({ searchesPerSecond }) => searchesPerSecond),
    spreadText(then, now),
    formatFigure(ratioOf(besideBullmq(before, then), besideBullmq(after, now))),
    ...figures.map(([, figure]) => ratioText(then, now, figure)),
  ]);
  return formatTable(titles, rows);
}

const keyOf = ({ case: name, contestant, shareOfPeak = 0 }: Measured) => `${name} ${contestant} ${shareOfPeak}`;

const rateOf = (one: Measured | undefined) => one && medianOf(one, ({ searchesPerSecond }) => searchesPerSecond);

function besideBullmq({ measured }: Results, one: Measured): number | undefined {
  if (one.contestant === "bullmq") return undefined;
  return ratioOf(
    rateOf(measured.find((other) => other.case === one.case && other.contestant === "bullmq")),
    rateOf(one),
  );
}

const ratioText = (then: Measured, now: Measured, figure: (round: Round) => number | undefined) =>
  formatFigure(ratioOf(medianOf(then, figure), medianOf(now, figure)));

function spreadText(then: Measured, now: Measured): string {
  if (then.rounds.length < 2 || now.rounds.length < 2) return "–";
  const [[thenFrom, thenTo], [nowFrom, nowTo]] = [spreadOf(then), spreadOf(now)];
  return nowFrom > thenTo || nowTo < thenFrom ? "yes" : "no";
}
