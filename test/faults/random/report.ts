import type { Row, Say } from "../report.ts";
import { deadlineMs } from "./cluster.ts";
import type { FaultName } from "./faults.ts";
import { runSeed, type SeedResult } from "./run.ts";

/** Runs seeds one after the other, until one breaks a promise. @returns a row for each, and one for the total. */
export async function randomFaults(options: {
  seed: number;
  seeds: number;
  searches: number;
  only?: FaultName | undefined;
  say: Say;
}): Promise<Row[]> {
  const { seed, seeds, searches, only, say } = options;
  const results: SeedResult[] = [];
  for (let at = 0; at < seeds; at += 1) {
    say(`seed ${seed + at} (${at + 1} of ${seeds}): ${searches} searches`);
    const result = await runSeed({ seed: seed + at, searches, only, say });
    for (const sentence of result.broken) say(`  BROKEN: ${sentence}`);
    results.push(result);
    if (result.broken.length > 0) break;
  }
  return [...results.map(rowOf), sumOf(results)];
}

function rowOf(result: SeedResult): Row {
  const { seed, searches, faults, outcomes, charged, inDoubt, longestMs, restMs, broken } = result;
  const seen = [
    ...Object.entries(outcomes).map(([outcome, count]) => `${count} × ${outcome}`),
    `${charged} charged`,
    `${inDoubt} in doubt`,
    `longest answer ${seconds(longestMs)}`,
    `at rest after ${seconds(restMs)}`,
    ...broken.slice(0, 3),
  ];
  return {
    what: `seed ${seed}: ${searches} searches, ${faults.length} faults`,
    promised: "the books are exact",
    seen: seen.join(", "),
    held: broken.length === 0,
  };
}

function sumOf(results: readonly SeedResult[]): Row {
  const sum = (figure: (result: SeedResult) => number) => results.reduce((total, result) => total + figure(result), 0);
  const longestMs = Math.max(...results.map((result) => result.longestMs));
  const kinds = new Set(results.flatMap(({ faults }) => faults.map(({ name }) => name)));
  return {
    what: `${sum((result) => result.searches)} searches, ${sum(({ faults }) => faults.length)} faults of ${kinds.size} kinds`,
    promised: `0 mils lost, doubled or given away; no answer after ${seconds(deadlineMs + 2_000)}`,
    seen: [
      `${sum((result) => result.charged)} charged`,
      `${sum((result) => result.reversed)} reversed, ${sum((result) => result.inDoubt)} of them in doubt`,
      `${sum((result) => result.unpaidPages)} pages without a charge`,
      `${sum(({ corrections }) => corrections.made)} balances corrected, ${sum(({ corrections }) => corrections.refused)} corrections refused`,
      `ledger verified ${sum((result) => result.verified)} times under faults`,
      `longest answer ${seconds(longestMs)}`,
    ].join(", "),
    held: results.every(({ broken }) => broken.length === 0),
  };
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
