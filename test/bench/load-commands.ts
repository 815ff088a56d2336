import { writeFileSync } from "node:fs";
import { chooseCases } from "./cases.ts";
import { checkYardstick } from "./contestants/yardstick.ts";
import { drawEven, evenReport, measureEven } from "./even.ts";
import { drawLatency } from "./latency-picture.ts";
import { measureLatency } from "./latency.ts";
import { type MemoryOptions, measureMemory } from "./memory.ts";
import { capacityReport, latencyReport, throughputReport } from "./report.ts";
import type { Measured } from "./results.ts";
import { type LoadOptions, withRun } from "./run.ts";
import { measureThroughput } from "./throughput.ts";

/** The output of a command: `print` for results, `say` for progress. */
export interface Output {
  print: (text: string) => void;
  say: (line: string) => void;
  /** Aborts when the command must stop. */
  interrupted: AbortSignal;
}

/** `throughput`: measures the cases and prints their tables. @throws if answers fail. */
export function throughput(options: LoadOptions & { only?: string[] }, output: Output): Promise<Measured[]> {
  const cases = chooseCases(options.only);
  return measure(options, output, {
    measured: () => withRun(output, (run) => measureThroughput(run, { ...options, cases })),
    report: (measured) => `${throughputReport(measured)}\n${capacityReport(measured)}`,
  });
}

/** `latency`: measures at fixed arrival rates, prints a table and draws a picture. @throws if answers fail. */
export async function latency(
  options: LoadOptions & { svg?: string; providerMs?: number },
  output: Output,
): Promise<void> {
  const measured = await measure(options, output, {
    measured: () => withRun(output, (run) => measureLatency(run, options)),
    report: latencyReport,
  });
  if (options.svg !== undefined) writeFileSync(options.svg, drawLatency(measured));
}

/** `even`: measures searches that come at fixed intervals, prints two tables and draws a picture. @throws if answers fail. */
export async function even(options: LoadOptions & { svg?: string }, output: Output): Promise<void> {
  const measured = await measure(options, output, {
    measured: () => withRun(output, (run) => measureEven(run, options)),
    report: evenReport,
  });
  if (options.svg !== undefined) writeFileSync(options.svg, drawEven(measured));
}

/** `memory`: reads the memory of the processes while they answer searches, and prints a table. @throws if answers fail. */
export async function memory(options: MemoryOptions, output: Output): Promise<void> {
  output.print(await withRun(output, (run) => measureMemory(run, options)));
}

async function measure(
  { yardstick }: LoadOptions,
  { print }: Output,
  command: { measured: () => Promise<Measured[]>; report: (measured: readonly Measured[]) => string },
): Promise<Measured[]> {
  // First, so that a missing file fails before the long work.
  if (yardstick !== undefined) checkYardstick(yardstick);
  const measured = await command.measured();
  print(command.report(measured));
  return measured;
}
