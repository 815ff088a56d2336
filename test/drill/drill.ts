import type { DrillStack, DrillStackOptions } from "./drill-stack.ts";

/** An outage that is caused on purpose, and the alerts that it must raise. */
export interface Drill {
  name: string;
  /** What is broken, in words for an operator. */
  outage: string;
  /** Searches are no longer answered: a page has to leave within two minutes. */
  isTotal?: true;
  expects: readonly [string, ...string[]];
  /** How long the alerts may take; five minutes by default. */
  withinMs?: number;
  /** What the stack needs besides the usual. */
  stack?: DrillStackOptions;
  /** Breaks it. @returns mends it. */
  begin: (stack: DrillStack) => Promise<() => Promise<void>>;
}

/** One alert of a drill. */
export interface DrillAlert {
  name: string;
  severity: string;
  /** From the outage until Prometheus handed it to Alertmanager. */
  afterMs: number;
}

/** What a drill showed. */
export interface DrillResult {
  drill: string;
  outage: string;
  isTotal: boolean;
  /** In the order of their arrival. */
  alerts: DrillAlert[];
  /** Those that were expected and did not come. */
  missing: string[];
  /** When the first page left Alertmanager, which groups pages first. Undefined if none did. */
  pagedAfterMs: number | undefined;
  /** From the repair until no alert was active, apart from those that last as long as their window. */
  quietAfterMs: number | undefined;
}

/** A page for a total outage has to leave in this time. */
export const pageMsMax = 120_000;

/** As in deploy/alertmanager: a page waits this long for others of its group. */
export const groupWaitMs = 10_000;

/** Alerts that stay for their window, or for as long as failures of the past are in it, also when all is well again. */
export const lastingAlerts: ReadonlySet<string> = new Set([
  "SearchesFail",
  "SearchesFailTooOften",
  "SearchesSlow",
  "TopupNotCredited",
  "AutoTopupRefused",
  "AutoTopupsDeclined",
  "AutoTopupsUnanswered",
  "UndeliveredReversals",
  "ProviderAccountRefused",
  "ProviderFails",
  "BreakerFlaps",
  "NotificationsFail",
  "ReplicaGone",
]);

/** Whether a drill showed what it has to. */
export const isPassed = ({ missing, isTotal, pagedAfterMs = Number.POSITIVE_INFINITY, quietAfterMs }: DrillResult) =>
  missing.length === 0 && quietAfterMs !== undefined && (!isTotal || pagedAfterMs <= pageMsMax);
