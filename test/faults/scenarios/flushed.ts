import { setTimeout as sleep } from "node:timers/promises";
import { Exposition } from "../../harness/assertions/metrics.ts";
import type { Row } from "../report.ts";
import { keepInFlight } from "./callers.ts";
import { seedOrganizations, type SeededOrganization } from "./seed-organizations.ts";
import { withStack, type Scenario, type ScenarioStack, type ScenarioServers, tally } from "./scenario.ts";
import { OrganizationTraffic } from "./organization-traffic.ts";
import { type Asked, warm } from "./request-sequence.ts";

/** Redis loses everything, flushed or killed, while many organizations ask for all kinds of things. */

const providerMs = 10;
const inFlight = 32;
const readyMsMax = 5_000;
// Visits before the memory is lost, so that it is lost in the middle of some.
const beforeMs = 1_000;
const storedMsMax = 30_000;
const storedLookEveryMs = 20;

export interface FlushedSize {
  organizations: number;
  /** How long the visits go on after the loss, at least; in any case until everybody was visited. */
  afterMs: number;
  /** Of a search. What was under way when Redis forgot it may take this long to end. */
  deadlineMs: number;
}

/** Redis lost everything. All times are by `performance.now()`, all durations in milliseconds. */
export interface Loss {
  how: "flushed" | "killed and restarted empty";
  /** When nothing was left in Redis, and when it took commands again. */
  lostAtMs: number;
  backAtMs: number;
  /** What was asked after the loss. */
  asked: Asked[];
  /** What was under way when it happened. */
  underWay: Asked[];
  /** From Redis' return until everybody had been visited since the loss. */
  allVisitedMs: number;
  /** From Redis' return until the reconciler had stored every pair; where it does. */
  storedMs: number | undefined;
}

export interface FlushedFigures {
  size: FlushedSize;
  losses: Loss[];
  verified: boolean;
}

export const flushed: Scenario = {
  name: "flushed",
  run: async (surroundings) =>
    rowsOf(await measureFlushed(surroundings, { organizations: 10_000, afterMs: 6_000, deadlineMs: 10_000 })),
};

export async function measureFlushed(surroundings: ScenarioServers, size: FlushedSize): Promise<FlushedFigures> {
  const environment = { SEARCH_DEADLINE_MS: String(size.deadlineMs) };
  return withStack(surroundings, { apis: 2, workers: 2, providerMs, environment }, async (scene) => {
    const { service, say } = scene;
    const crowd = await seedOrganizations(service, size.organizations);
    await warmUp(scene, crowd);
    say(`flushed: Redis knows ${crowd.length} organizations`);
    const losses = [await tourDuring(scene, size, crowd, "flushed")];
    losses.push(await tourDuring(scene, size, crowd, "killed and restarted empty"));
    await service.rest();
    return { size, losses, verified: (await service.verify()).ok };
  });
}

async function warmUp(scene: ScenarioStack, crowd: readonly SeededOrganization[]): Promise<void> {
  let next = 0;
  await keepInFlight(inFlight, async () => {
    const count = next++;
    const member = crowd[count];
    if (!member) return false;
    const wrong = (await warm(scene, member, count)).find(({ verdict }) => verdict !== "right");
    if (wrong) throw new Error(`wrong even before the loss: ${wrong.told.status} ${wrong.told.text}`);
    return true;
  });
}

async function tourDuring(
  scene: ScenarioStack,
  size: FlushedSize,
  crowd: SeededOrganization[],
  how: Loss["how"],
): Promise<Loss> {
  const tour = new OrganizationTraffic(scene, crowd);
  let backAtMs = Number.POSITIVE_INFINITY;
  const going = tour.go(inFlight, () => performance.now() > backAtMs + size.afterMs);
  await sleep(beforeMs);
  const storedBefore = await storedPairs(scene);
  tour.beginLoss();
  await lose[how](scene, () => tour.endLoss());
  backAtMs = performance.now();
  const storedMs = how === "flushed" ? undefined : await allStored(scene, storedBefore, size.organizations, backAtMs);
  await going;
  crowd.splice(0, crowd.length, ...crowd.filter((member) => !tour.doubted.has(member)));
  const { asked, underWay, lostAtMs } = tour;
  scene.say(`${how}: ${asked.length} requests, ${tally(asked.map(({ verdict }) => verdict))}`);
  return { how, asked, underWay, lostAtMs, backAtMs, allVisitedMs: tour.allVisitedAtMs - backAtMs, storedMs };
}

const lose = {
  flushed: async ({ service }: ScenarioStack, endLoss: () => void) => {
    await service.redis.flushall();
    endLoss();
  },
  "killed and restarted empty": async ({ service }: ScenarioStack, endLoss: () => void) => {
    const { port } = service.redisServer;
    service.redisServer.kill("SIGKILL");
    await service.redisServer.stop(); // It is gone already; this takes its folder away.
    endLoss();
    await service.restartRedis(port);
  },
};

/** Pairs that each worker has stored because Redis was restarted. */
async function storedPairs({ service }: ScenarioStack): Promise<number[]> {
  const metrics = await Promise.all(service.workers.map((worker) => Exposition.of(worker)));
  return metrics.map((told) => told.value('pairs_stored_total{why="redis_restarted"}') ?? 0);
}

async function allStored(
  scene: ScenarioStack,
  before: number[],
  pairs: number,
  backAtMs: number,
): Promise<number | undefined> {
  while (performance.now() - backAtMs < storedMsMax) {
    // Either worker may be the one that stores them all.
    const stored = await storedPairs(scene);
    if (stored.some((now, place) => now - (before[place] ?? 0) >= pairs)) return performance.now() - backAtMs;
    await sleep(storedLookEveryMs);
  }
  return undefined;
}

function rowsOf({ size, losses, verified }: FlushedFigures): Row[] {
  const rows = losses.flatMap((loss) => rowsOfLoss(size, loss));
  const seen = verified ? "verified" : "broken";
  return [...rows, { what: "the ledger, after both", promised: "every invariant holds", seen, held: verified }];
}

function rowsOfLoss({ organizations }: FlushedSize, loss: Loss): Row[] {
  const what = `Redis ${loss.how} with ${organizations} organizations in it`;
  const { asked, backAtMs, lostAtMs, storedMs } = loss;
  const wrong = asked.filter(({ verdict }) => verdict === "wrong");
  const inTime = asked.filter(({ told }) => told.beganAtMs < backAtMs + readyMsMax).length;
  const readyMs = readyAfter(loss);
  const rows = [
    {
      what,
      promised: "no wrong answer: what each has to the mil, or 503",
      seen: `${asked.length} requests, ${inTime} of them in the first ${readyMsMax / 1_000} s: ${tally(asked.map(({ told, verdict }) => `${told.status} ${verdict}`))}; under way: ${tally(loss.underWay.map(({ told }) => told.status))}`,
      held: wrong.length === 0 && inTime > 0,
    },
    {
      what: `${what}, away ${(backAtMs - lostAtMs).toFixed(0)} ms`,
      promised: `ready within ${readyMsMax / 1_000} s`,
      seen: `a search answered after ${readyMs.firstSearch.toFixed(0)} ms, the last 503 after ${readyMs.lastRefusal.toFixed(0)} ms, everybody asked after ${(loss.allVisitedMs / 1_000).toFixed(1)} s`,
      held: readyMs.firstSearch <= readyMsMax && readyMs.lastRefusal <= readyMsMax,
    },
  ];
  if (loss.how === "flushed") return rows;
  const seen = storedMs === undefined ? "not seen" : `${storedMs.toFixed(0)} ms after Redis' return`;
  const held = storedMs !== undefined && storedMs <= readyMsMax;
  return [...rows, { what, promised: `every balance is in Redis again within ${readyMsMax / 1_000} s`, seen, held }];
}

/** Milliseconds from Redis' return to the first answered search, and to the last refusal (0 without any). */
export function readyAfter({ asked, backAtMs }: Pick<Loss, "asked" | "backAtMs">) {
  const endMs = ({ told }: Asked) => told.beganAtMs + told.ms - backAtMs;
  const searches = asked.filter(({ what, told }) => what === "search" && told.status === 200).map(endMs);
  const refusals = asked.filter(({ verdict }) => verdict === "refused").map(endMs);
  return { firstSearch: Math.min(...searches), lastRefusal: Math.max(0, ...refusals) };
}
