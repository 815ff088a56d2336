import { formatTable } from "../harness/format-table.ts";
import { formatFigure, ratioOf } from "./report.ts";
import { type Measured, medianOf, type Round, serviceCpuUs } from "./results.ts";

const usPerSecond = 1_000_000;
/** A million searches of one µs take a core this part of an hour. */
const hoursPerMillionUs = 1 / 3_600;
// A process with a smaller share of the CPU never is the bound, and the figure would be mostly noise.
const shareMin = 0.05;
const usualCase = "connections-64";

const processes: readonly [title: string, cpuUs: (round: Round) => number | undefined][] = [
  ["API", ({ cpuUs }) => cpuUs.api],
  ["worker", ({ cpuUs }) => cpuUs.worker],
  ["Redis", ({ cpuUs }) => cpuUs.redis],
  ["Postgres", ({ cpuUs }) => cpuUs.postgres],
];

/**
 * What the service's CPU means for machines: the core-hours of a million searches, relative to those of the usual case, and how many
 * searches per second one busy core carries, also of each kind of process that takes a share that matters. Empty where CPU is not
 * measured.
 */
export function capacityReport(measured: readonly Measured[]): string {
  const own = measured.filter((one) => one.contestant === "serpmill" && medianOf(one, serviceCpuUs) !== undefined);
  if (own.length === 0) return "";
  const usual = own.find((one) => one.case === usualCase);
  const titles = [
    "case",
    "core-hours a million",
    `× ${usualCase}`,
    "a core carries/s: all",
    ...processes.map(([title]) => title),
  ];
  const rows = own.map((one) => {
    const us = medianOf(one, serviceCpuUs) ?? 0;
    return [
      one.case,
      formatFigure(us * hoursPerMillionUs),
      formatFigure(ratioOf(usual && medianOf(usual, serviceCpuUs), us)),
      formatFigure(usPerSecond / us),
      ...processes.map(([, cpuUs]) => {
        const ownUs = medianOf(one, cpuUs) ?? 0;
        return formatFigure(ownUs < us * shareMin ? undefined : usPerSecond / ownUs);
      }),
    ];
  });
  return formatTable(titles, rows);
}
