import type { ParserRefusal } from "./http/server.ts";
import { type Log, throttled } from "../shared/log.ts";
import type { Metrics } from "../shared/metrics.ts";

// Scanners send malformed requests all day. The metric has their number.
const quietMs = 60_000;

/** Counts requests that Node itself rejected, and logs at most one a minute: they have no line of their own in the log. */
export function openParserRefusals({ metrics, log }: { metrics: Metrics; log: Log }): (refusal: ParserRefusal) => void {
  const logOne = throttled<ParserRefusal>(quietMs, ({ reason, code }, leftOut) =>
    log.info({ reason, code, leftOut }, "the HTTP parser refused a request"),
  );
  return (refusal) => {
    metrics.parserRefusals.inc({ reason: refusal.reason });
    logOne(refusal);
  };
}
