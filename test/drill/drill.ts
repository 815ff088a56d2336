import type { DrillStack, DrillStackOptions } from "./drill-stack.ts";

/** A deliberate outage, and the alerts that it must raise. */
export interface Drill {
  name: string;
  /** What is broken, described for an operator. */
  outage: string;
  /** Searches are no longer answered, so a page must leave within two minutes. */
  isTotal?: true;
  expects: readonly [string, ...string[]];
  /** How long the alerts may take; five minutes by default. */
  withinMs?: number;
  /** What the stack needs, if not the default. */
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

/** The result of a drill. */
export interface DrillResult {
  drill: string;
  outage: string;
  isTotal: boolean;
  /** In order of arrival. */
  alerts: DrillAlert[];
  /** Expected alerts that did not come. */
  missing: string[];
  /** When the first page left Alertmanager, after its group wait. Undefined if none did. */
  pagedAfterMs: number | undefined;
  /** From the repair until no alert was active, apart from lasting ones. */
  quietAfterMs: number | undefined;
}

/** A page for a total outage must leave within this time. */
export const pageMsMax = 120_000;

/** As in deploy/alertmanager: a page waits this long for others of its group. */
export const groupWaitMs = 10_000;

/** Alerts that stay active after the repair, as long as past failures are in their window. */
export const lastingAlerts: ReadonlySet<string> = new Set([
  "SearchesFail",
  "SearchesFailTooOften",
  "SearchesSlow",
  "TopupNotCredited",
  "StripeEventsRefused",
  "TopupDisputed",
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

/** Whether the expected alerts came, in time, and ended. */
export const isPassed = ({ missing, isTotal, pagedAfterMs = Number.POSITIVE_INFINITY, quietAfterMs }: DrillResult) =>
  missing.length === 0 && quietAfterMs !== undefined && (!isTotal || pagedAfterMs <= pageMsMax);
