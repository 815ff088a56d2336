import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import type { Say } from "../../faults/report.ts";
import type { Stores } from "./stores.ts";

/** A store that loses its primary, or changes it, while searches arrive. */
export interface Failover {
  name: string;
  /** What happens to the store, and how the processes reach it. */
  what: string;
  /** For how long searches may go unanswered at each of its steps. */
  outageMsMax: number;
  /**
   * From when that counts: from the first search that is not answered, or from the moment when the promoted primary answers,
   * or the old one may.
   */
  since: "outage" | "recovery";
  /** Whether the new primary lacks the newest entries, which have to be named then. */
  losesEntries?: true;
  open: (shutdown: Shutdown) => Promise<PreparedFailover>;
}

/** A failover whose stores run. */
export interface PreparedFailover {
  stores: Stores;
  steps: readonly FailoverStep[];
}

export interface FailoverStep {
  /** What happens, for the row: `once it runs again`. The first step needs none. */
  what?: string;
  /** @returns when the recovery was, by `performance.now()`, if it counts. Resolves when the stores have changed. */
  begin: () => Promise<number | undefined>;
}

export interface FailoverContext {
  say: Say;
  interrupted: AbortSignal;
}

/** A step's outage: undefined if searches were not answered again. */
export interface StepOutage {
  what: string | undefined;
  outageMs: number | undefined;
}

export interface FailoverResult {
  name: string;
  what: string;
  outageMsMax: number;
  since: Failover["since"];
  searches: number;
  /** The outcomes of the searches that were not answered with 200: `12 × 503`. */
  failed: string;
  failedCount: number;
  outages: StepOutage[];
  /** Mils of answers that are not charged in the end. */
  lostMils: number;
  /** Mils that the service itself reports as lost or given back. */
  namedMils: number;
  /** How often a supervisor had to start a process anew. */
  restarts: number;
  /** A sentence for each other promise that was broken. */
  broken: string[];
}

/** What is outside of the targets. */
export function missesOf(result: FailoverResult): string[] {
  const { outages, outageMsMax, lostMils, namedMils, restarts, broken } = result;
  return [
    ...outages
      .filter(({ outageMs = Number.POSITIVE_INFINITY }) => outageMs > outageMsMax)
      .map(({ what = "", outageMs }) => `no answers for ${secondsOf(outageMs)} ${what}`.trim()),
    ...(lostMils > namedMils ? [`${lostMils} mils lost, ${namedMils} named`] : []),
    ...(restarts > 0 ? [`${restarts} processes restarted`] : []),
    ...broken,
  ];
}

export const secondsOf = (ms: number | undefined): string =>
  ms === undefined ? "more than a minute" : `${(ms / 1_000).toFixed(1)} s`;
