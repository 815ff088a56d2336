import { readStoredBalances } from "../../../shared/credits/stored-balances.ts";
import { progressKey } from "../../../worker/reconcile.ts";
import { ledgerViolations } from "../../faults/audit/audit.ts";
import type { CallerAnswer } from "../../faults/scenarios/callers.ts";
import { storedBalances } from "../../faults/scenarios/flushed.ts";
import { type SeededOrganization, seedOrganizations } from "../../faults/scenarios/seed-organizations.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";

const pageSize = 1_000; // As in worker/reconcile.ts.
const resyncMsMax = 120_000;
const organizationsCount: Record<Strength, number> = { quick: 1_500, full: 50_000 };

/** Redis loses everything beside more organizations than one maintenance run can store. */
export const manyOrganizations: Attack = {
  name: "many-organizations",
  tried: "Redis is flushed beside 50,000 organizations, while others search",
  stack: { workers: 2, settings: { SEARCH_DEADLINE_MS: "5000" } },
  run: async (stack, strength) => {
    const { service } = stack;
    const seeded = await seedOrganizations(service, organizationsCount[strength]);
    const honest = { organizations: await honestOrganizations(stack, 4), perSecond: 10 };
    const all = seeded.length + honest.organizations.length;
    const before = await storedBalances(service.workers);
    let lostAtMs = Number.POSITIVE_INFINITY;
    let backAtMs = Number.POSITIVE_INFINITY;
    let resync: Resync | undefined;
    const answers = await honestBeside(stack, honest, async () => {
      lostAtMs = performance.now();
      await service.redis.flushall();
      backAtMs = performance.now();
      resync = await followResync(stack);
    });
    const stored = (await storedBalances(service.workers)).map((count, worker) => count - (before[worker] ?? 0));
    // Searches in flight at the flush may fail; then they are not charged.
    const later = answers.filter(({ beganAtMs, ms }) => beganAtMs > backAtMs || beganAtMs + ms < lostAtMs);
    return [
      judgeResync(resync, stored, all),
      judgeHonest(later, "every search that begins after the flush is answered"),
      await judgeBalances(stack, seeded, answers),
    ];
  },
};

interface Resync {
  tookMs: number;
  isDone: boolean;
  /** The progress values that were seen, and the workers that led. */
  seen: ReadonlySet<string>;
  leaders: ReadonlySet<string>;
}

async function followResync({ service: { redis } }: AttackStack): Promise<Resync> {
  const [seen, leaders] = [new Set<string>(), new Set<string>()];
  const beganAtMs = performance.now();
  const isDone = await becomes(async () => {
    const [progress, leader] = await redis.mget(progressKey, "maintenance");
    if (leader) leaders.add(leader);
    if (progress) seen.add(progress);
    return progress?.includes('"done":true') ?? false;
  }, resyncMsMax);
  return { tookMs: performance.now() - beganAtMs, isDone, seen, leaders };
}

function judgeResync(resync: Resync | undefined, stored: readonly number[], all: number): Finding {
  const sum = stored.reduce((one, other) => one + other, 0);
  const isOnce = sum >= all && sum <= all + pageSize;
  return {
    promised: "one worker stores every balance once, page by page, and finishes",
    seen: `${sum} of ${all} (${stored.join(" and ")}) in ${((resync?.tookMs ?? 0) / 1_000).toFixed(1)} s, ${resync?.seen.size} pages seen, ${resync?.leaders.size} leader`,
    held: (resync?.isDone ?? false) && isOnce,
  };
}

async function judgeBalances(
  { service }: AttackStack,
  seeded: readonly SeededOrganization[],
  answers: readonly CallerAnswer[],
): Promise<Finding> {
  await service.rest();
  let wrong = 0;
  for (let at = 0; at < seeded.length; at += pageSize) {
    const page = seeded.slice(at, at + pageSize);
    const ids = page.map(({ organizationId }) => organizationId);
    const copies = await readStoredBalances(service.redis, ids);
    wrong += page.filter(
      ({ organizationId, balanceMils }) => copies.get(organizationId)?.balanceMils !== balanceMils,
    ).length;
  }
  const violations = await ledgerViolations(service);
  return {
    promised: "every balance is exact in Redis, and the ledger is right",
    seen: [
      `${seeded.length - wrong} of ${seeded.length}; ${tally(answers.map(({ status }) => status))}`,
      ...violations,
    ].join("; "),
    held: wrong === 0 && violations.length === 0,
  };
}
