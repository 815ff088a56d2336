import { formatTable } from "../../harness/format-table.ts";
import { type FailoverResult, missesOf, secondsOf } from "./failover.ts";

const titles = [
  "drill",
  "what happens",
  "failed searches",
  "without answers",
  "target",
  "mils lost",
  "restarts",
  "met",
];

/** The results as a table that is also Markdown. */
export function failoverReport(results: readonly FailoverResult[]): string {
  return formatTable(
    titles,
    results.map((result) => [
      `\`${result.name}\``,
      result.what,
      failedOf(result),
      result.outages.map(({ what, outageMs }) => [secondsOf(outageMs), what].filter(Boolean).join(" ")).join(", "),
      `${result.outageMsMax / 1_000} s${result.since === "recovery" ? " after the recovery" : ""}`,
      lostOf(result),
      String(result.restarts),
      missesOf(result).length === 0 ? "yes" : `NO: ${missesOf(result).slice(0, 3).join("; ")}`,
    ]),
  );
}

const failedOf = ({ failedCount, failed, searches }: FailoverResult) =>
  `${failedCount} of ${searches}${failedCount > 0 ? `: ${failed}` : ""}`;

const lostOf = ({ lostMils, namedMils }: FailoverResult) =>
  lostMils === 0 ? "0" : `${lostMils}, of which the service names ${Math.min(lostMils, namedMils)}`;

/** The last line: which drills failed. */
export function failoverConclusion(results: readonly FailoverResult[]): string {
  const failed = results.filter((result) => missesOf(result).length > 0);
  if (failed.length === 0) return "Every failover met its target.";
  return `${failed.length} of ${results.length} failovers missed a target: ${failed.map(({ name }) => name).join(", ")}.`;
}
