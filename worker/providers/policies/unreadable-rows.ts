import { type Log, throttled } from "../../../shared/log.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import type { PageOutcome } from "../provider.ts";

// A changed format affects every answer, and one line says all of it.
const logPauseMs = 60_000;

/** Counts the rows that an adapter could not read, and logs them at most once a minute: the caller gets the rest of the page. */
export function countUnreadableRows(parts: {
  provider: string;
  metrics: Pick<Metrics, "providerUnreadableRows">;
  log: Log;
}): (outcome: PageOutcome) => void {
  const { provider, metrics, log } = parts;
  const warn = throttled(logPauseMs, (rows: number, leftOut) =>
    log.warn({ provider, rows, leftOut }, "an answer had rows that could not be read, the caller got the others"),
  );
  metrics.providerUnreadableRows.inc({ provider }, 0);
  return (outcome) => {
    if ("failure" in outcome || !outcome.unreadableRows) return;
    metrics.providerUnreadableRows.inc({ provider }, outcome.unreadableRows);
    warn(outcome.unreadableRows);
  };
}
