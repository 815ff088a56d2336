import { formatTable } from "../harness/format-table.ts";
import { type DrillResult, isPassed, pageMsMax } from "./drill.ts";

const titles = [
  "drill",
  "outage",
  "alerts, and when they reached Alertmanager",
  "paged after",
  "target",
  "quiet after",
];

/** The results as a table that is also Markdown. */
export function reportOf(results: readonly DrillResult[]): string {
  return formatTable(
    titles,
    results.map((result) => [
      result.drill,
      result.outage,
      alertsOf(result),
      seconds(result.pagedAfterMs),
      targetOf(result),
      result.quietAfterMs === undefined ? "NOT QUIET" : seconds(result.quietAfterMs),
    ]),
  );
}

const seconds = (ms: number | undefined) => (ms === undefined ? "no page" : `${Math.round(ms / 1_000)} s`);

function alertsOf({ alerts, missing }: DrillResult): string {
  const came = alerts.map(({ name, severity, afterMs }) => `\`${name}\` (${severity}) ${seconds(afterMs)}`);
  return [...came, ...missing.map((name) => `MISSING: \`${name}\``)].join(", ");
}

function targetOf(result: DrillResult): string {
  if (!result.isTotal) return "none: no total outage";
  const { pagedAfterMs = Number.POSITIVE_INFINITY } = result;
  return `${pageMsMax / 1_000} s: ${pagedAfterMs <= pageMsMax ? "met" : "NOT MET"}`;
}

/** The last line: which drills failed. */
export function conclusionOf(results: readonly DrillResult[]): string {
  const failed = results.filter((result) => !isPassed(result));
  if (failed.length === 0) return "Every expected alert came, and every total outage paged in time.";
  return `${failed.length} of ${results.length} drills failed: ${failed.map(({ drill }) => drill).join(", ")}.`;
}
