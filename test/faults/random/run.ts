import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { becomes } from "../../harness/assertions/eventually.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { tooManyUnpaid } from "../audit/unpaid-calls.ts";
import { readAccounts } from "../audit/accounts.ts";
import { audit, ledgerViolations, type Totals, totalsOf } from "../audit/audit.ts";
import { wrongBalances } from "../audit/balances.ts";
import { auditCorrections, correctedMilsOf, readCorrections } from "../audit/corrections.ts";
import { type Attempt, auditedApi, durationMs, type Evidence, wasUnreachable } from "../audit/evidence.ts";
import { untilAtRest } from "../audit/rest.ts";
import { auditSpending } from "../audit/spending.ts";
import { limitThatRefused, readSpendingEntries, type SpendingEvidence } from "../audit/spending-evidence.ts";
import type { Say } from "../report.ts";
import { BackgroundTraffic } from "./background-traffic.ts";
import { Callers, indexOf } from "./callers.ts";
import { Cluster, deadlineMs } from "./cluster.ts";
import type { FaultName } from "./faults.ts";
import { injectFaults, mend } from "./inject-faults.ts";
import { type PlannedFault, planOf } from "./plan.ts";
import { fetchPaidKeys, repeatKeysOnceFlushed, searchOnceMended } from "./recovery.ts";
import { searchAtLimits } from "./search-at-limits.ts";

const warmUpMs = 1_000;
const finalProviderMs = 30;
const confirmMsMax = 10_000;

export interface SeedResult extends Totals {
  seed: number;
  searches: number;
  faults: PlannedFault[];
  /** Attempts by outcome: a status, or why there was no answer. */
  outcomes: Record<string, number>;
  /** The longest attempt at an API that no fault affected. */
  longestMs: number;
  /** From the end of the last fault until nothing was in flight. */
  restMs: number;
  /** How often the ledger was verified while searches ran. */
  verified: number;
  /** Corrections of balances: made, and refused because the balance would have fallen below 0. */
  corrections: { made: number; refused: number };
  broken: string[];
}

/**
 * Runs one seed: sends searches under faults, ends all faults, waits for rest, and audits. The seed fixes what is sent and
 * injected, and when. How the machine schedules the processes differs each time.
 */
export async function runSeed(options: {
  seed: number;
  searches: number;
  only?: FaultName | undefined;
  /** How long after its deadline an answer may arrive, and how long a search may take after all faults. */
  lateMsMax?: number;
  say: Say;
}): Promise<SeedResult> {
  const { seed, searches, only, lateMsMax = 2_000, say } = options;
  const plan = planOf(seed, searches, only);
  const latencyMsOf = (keyword: string) => plan.searches[indexOf(keyword)]?.providerMs ?? finalProviderMs;
  const cluster = await Cluster.open({ latencyMsOf });
  const callers = new Callers(cluster);
  // How long this process itself was unable to read an answer that had arrived.
  const stalls = monitorEventLoopDelay();
  stalls.enable();
  try {
    const traffic = new BackgroundTraffic(cluster);
    const stop = new AbortController();
    const background = traffic.run(plan.background, stop.signal);
    const injecting = sleep(warmUpMs).then(() => injectFaults(cluster, plan.faults, stop.signal, say));
    await callers.run(plan.searches, (done) => {
      if (done % 100 === 0) say(`  ${done} of ${searches} searches`);
    });
    stop.abort();
    const faults = await injecting;
    await mend(cluster);
    await background;

    const mendedAtMs = performance.now();
    const restless = await comeToRest(cluster);
    const restMs = performance.now() - mendedAtMs;
    const unfulfilled = [
      ...(await tooManyUnpaid(cluster.service, cluster.organizationIds)),
      ...(await searchAtLimits(cluster, callers)),
      ...(await fetchPaidKeys(callers, cluster, plan.searches)),
      ...(await repeatKeysOnceFlushed(callers, cluster, plan.searches)),
      ...(await searchOnceMended(cluster, callers, lateMsMax + stalls.max / 1e6)),
    ];
    const evidence = await collectEvidence(cluster, callers, deadlineMs + lateMsMax + stalls.max / 1e6);
    const observed = [...audit(evidence), ...traffic.wrong, ...restless, ...unfulfilled];
    const broken = [...observed, ...(await auditCluster(cluster, evidence))];
    const longestMs = Math.max(
      0,
      ...callers.attempts.filter((one) => one.answer && !wasUnreachable(evidence, one)).map(durationMs),
    );
    const { verified } = traffic;
    const outcomes = countOutcomes(callers.attempts);
    const counted = { faults, outcomes, verified, corrections: countCorrections(cluster) };
    return { ...totalsOf(evidence), ...counted, seed, searches, longestMs, restMs, broken };
  } finally {
    stalls.disable();
    await callers.close();
    await cluster.close();
  }
}

/** @returns what did not come to rest. */
async function comeToRest({ service, organizationIds }: Cluster): Promise<string[]> {
  try {
    await untilAtRest(service, organizationIds, confirmMsMax);
    return [];
  } catch (error) {
    return [`it did not come to rest: ${error instanceof Error ? error.message : String(error)}`];
  }
}

async function collectEvidence(cluster: Cluster, callers: Callers, answerMsMax: number): Promise<Evidence> {
  const { service, apis, organizationIds, provider } = cluster;
  return {
    accounts: await readAccounts(service.database, organizationIds),
    attempts: callers.attempts,
    apis: [auditedApi(apis[0]), auditedApi(apis[1])],
    providerCalls: provider.calls,
    answerMsMax,
  };
}

async function collectSpending(
  { service, customers, organizationIds, limits }: Cluster,
  attempts: readonly Attempt[],
): Promise<SpendingEvidence> {
  const tokens = customers.flatMap((customer) => customer.tokens);
  const searching = tokens.filter(({ scopes }) => scopes.includes("search"));
  return {
    entries: await readSpendingEntries(service.database, organizationIds),
    limits: limits.inForce,
    searchTokenIds: new Set(searching.map(({ tokenId }) => tokenId)),
    attempts,
  };
}

/** What the processes and servers say at rest. */
async function auditCluster(cluster: Cluster, { accounts, attempts }: Evidence): Promise<string[]> {
  const { service, customers, organizationIds, corrections } = cluster;
  const audited = customers.map((customer) => ({
    ...customer,
    grantedMils: customer.grantedMils + correctedMilsOf(corrections.sent, customer.organizationId),
  }));
  const urls = cluster.apis.map(({ links }) => links.outside.url.replace(/\/$/, ""));
  return [
    ...(await wrongBalances(service, audited, accounts, urls)),
    ...auditCorrections(corrections.sent, await readCorrections(service.database, organizationIds)),
    ...(await ledgerViolations(service)),
    ...auditSpending(await collectSpending(cluster, attempts)),
    ...cluster.processes.flatMap((process) => process.defects()),
    ...(await measuredDrift(cluster)),
  ];
}

/** The reconciler's metric returns to zero once it has compared every balance. */
async function measuredDrift({ workers }: Cluster): Promise<string[]> {
  let measured: number[] = [];
  const isZero = async () => {
    const expositions = await Promise.all(workers.map(({ opsUrl = "" }) => Exposition.of({ opsUrl })));
    measured = expositions.flatMap((exposition) => exposition.value("ledger_drift_mils") ?? []);
    return measured.length > 0 && measured.every((mils) => mils === 0);
  };
  if (await becomes(isZero)) return [];
  return [measured.length === 0 ? "no worker measures the drift" : `ledger_drift_mils is ${measured.join(" and ")}`];
}

function countCorrections({ corrections: { sent } }: Cluster): SeedResult["corrections"] {
  const made = sent.filter(({ isMade }) => isMade).length;
  return { made, refused: sent.length - made };
}

function countOutcomes(attempts: readonly Attempt[]): Record<string, number> {
  const outcomeOf = (attempt: Attempt) => {
    const limit = limitThatRefused(attempt);
    const status = String(attempt.answer?.status ?? attempt.noAnswer);
    return limit ? `${status} by a limit` : status;
  };
  const groups = Map.groupBy(attempts, outcomeOf);
  return Object.fromEntries([...groups].map(([outcome, same]) => [outcome, same.length]));
}
