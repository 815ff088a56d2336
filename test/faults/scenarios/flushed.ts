import { eventually } from "../../harness/assertions/eventually.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { ledgerViolations } from "../audit/audit.ts";
import type { Row } from "../report.ts";
import { callEach } from "./callers.ts";
import { OrganizationTraffic } from "./organization-traffic.ts";
import { type CheckedAnswer, warmUp } from "./request-sequence.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { type SeededOrganization, seedOrganizations } from "./seed-organizations.ts";
import { tally } from "./statistics.ts";

/** Redis is flushed, then killed and restarted empty, while many organizations send all kinds of requests. */

const providerMs = 10;
const inFlight = 32;
const storedTimeoutMs = 60_000;
const answeredTimeoutMs = 60_000;

interface FlushedSize {
  organizations: number;
  /** For how long the traffic continues after the loss, at least. It always continues until a search is answered. */
  afterMs: number;
  /** How long it may take until all is as before. */
  readyMsMax: number;
}

/** A loss of all data in Redis. Instants are by `performance.now()`, durations in milliseconds. */
interface Loss {
  how: "flushed" | "killed and restarted empty";
  /** When nothing was left in Redis, and when it took commands again. */
  lostAtMs: number;
  backAtMs: number;
  traffic: OrganizationTraffic;
  /** From Redis' return until the reconciler had stored every balance. A flush does not make it store them. */
  storedMs: number | undefined;
}

export const flushed: Scenario = {
  name: "flushed",
  run: (servers) =>
    withStack(servers, { apis: 2, workers: 2, settings: { SEARCH_DEADLINE_MS: "10000" } }, (stack) =>
      measureFlushed(stack, { organizations: 10_000, afterMs: 6_000, readyMsMax: 5_000 }),
    ),
};

export async function measureFlushed(stack: ScenarioStack, size: FlushedSize): Promise<Row[]> {
  const { service, say } = stack;
  stack.answerAfter(providerMs);
  const organizations = await seedOrganizations(service, size.organizations);
  await warmUpAll(stack, organizations);
  say(`flushed: Redis has ${organizations.length} organizations`);
  const losses = [await loseDuringTraffic(stack, size, organizations, "flushed")];
  losses.push(await loseDuringTraffic(stack, size, organizations, "killed and restarted empty"));
  await service.rest();
  const broken = await ledgerViolations(service);
  const seen = broken.join("; ") || "so";
  return [
    ...losses.flatMap((loss) => rowsOf(size, loss)),
    { what: "the ledger after both losses", promised: "every invariant holds", seen, held: broken.length === 0 },
  ];
}

async function warmUpAll(stack: ScenarioStack, organizations: readonly SeededOrganization[]): Promise<void> {
  const warmUpOne = async (organization: SeededOrganization, n: number): Promise<void> => {
    const checked = await warmUp(stack, organization, n);
    const wrong = checked.find(({ verdict }) => verdict === "wrong");
    if (wrong) throw new Error(`wrong before the loss: ${wrong.answer.status} ${wrong.answer.text}`);
    // APIs that have just started may refuse the first requests.
    if (checked.some(({ verdict }) => verdict === "refused")) await warmUpOne(organization, n);
  };
  await callEach(organizations.length, inFlight, async (n) => {
    const organization = organizations[n];
    if (organization) await warmUpOne(organization, n);
  });
}

async function loseDuringTraffic(
  stack: ScenarioStack,
  size: FlushedSize,
  organizations: SeededOrganization[],
  how: Loss["how"],
): Promise<Loss> {
  const traffic = new OrganizationTraffic(stack, organizations);
  let backAtMs = Number.POSITIVE_INFINITY;
  const isEnough = () => {
    const sinceMs = performance.now() - backAtMs;
    return sinceMs > size.afterMs && (traffic.hasAnsweredSearch || sinceMs > size.afterMs + answeredTimeoutMs);
  };
  const running = traffic.run(inFlight, isEnough);
  // Redis loses its data in the middle of some sequences.
  await traffic.untilBegun(2 * inFlight);
  const storedBefore = await storedBalances(stack.workers);
  traffic.beginLoss();
  await lose[how](stack, () => traffic.endLoss());
  backAtMs = performance.now();
  const storedMs =
    how === "flushed" ? undefined : await untilAllStored(stack, storedBefore, size.organizations, backAtMs);
  await running;
  organizations.splice(0, organizations.length, ...organizations.filter((one) => !traffic.doubtful.has(one)));
  stack.say(`${how}: ${traffic.afterLoss.length} requests, ${tally(traffic.afterLoss.map(({ verdict }) => verdict))}`);
  return { how, traffic, lostAtMs: traffic.lostAtMs, backAtMs, storedMs };
}

const lose = {
  flushed: async ({ service }: ScenarioStack, endLoss: () => void) => {
    await service.redis.flushall();
    endLoss();
  },
  "killed and restarted empty": async ({ service }: ScenarioStack, endLoss: () => void) => {
    const { port } = service.redisServer;
    service.redisServer.kill("SIGKILL");
    await service.redisServer.stop(); // It has ended; this removes its folder.
    endLoss();
    await service.restartRedis(port);
  },
};

/** How many balances each worker has stored because Redis lost them. */
async function storedBalances(workers: readonly { opsUrl?: string | undefined }[]): Promise<number[]> {
  const expositions = await Promise.all(workers.map(({ opsUrl = "" }) => Exposition.of({ opsUrl })));
  return expositions.map((exposition) => exposition.value('balances_stored_total{why="redis_restarted"}') ?? 0);
}

async function untilAllStored(
  stack: ScenarioStack,
  before: readonly number[],
  balances: number,
  backAtMs: number,
): Promise<number> {
  // Either worker may store all of them.
  const isStored = async () =>
    (await storedBalances(stack.workers)).some((now, worker) => now - (before[worker] ?? 0) >= balances);
  await eventually(isStored, storedTimeoutMs);
  return performance.now() - backAtMs;
}

function rowsOf({ organizations, readyMsMax }: FlushedSize, loss: Loss): Row[] {
  const what = `Redis ${loss.how} with ${organizations} organizations in it`;
  const { backAtMs, lostAtMs, storedMs, traffic } = loss;
  const checked = traffic.afterLoss;
  const isWrong = checked.some(({ verdict }) => verdict === "wrong");
  const soon = checked.filter(({ answer }) => answer.beganAtMs < backAtMs + readyMsMax).length;
  const { firstSearchMs, lastRefusalMs } = readyAfter(loss);
  const servedMs = traffic.allServedAtMs - backAtMs;
  const rows = [
    {
      what,
      promised: "no wrong answer: balances exact to the mil, or 503",
      seen: `${checked.length} requests, ${soon} of them in the first ${readyMsMax / 1_000} s: ${tally(checked.map(({ answer, verdict }) => `${answer.status} ${verdict}`))}; in flight at the loss: ${tally(traffic.inFlight.map(({ answer }) => answer.status))}`,
      held: !isWrong && soon > 0,
    },
    {
      what: `${what}, away ${(backAtMs - lostAtMs).toFixed(0)} ms`,
      promised: `ready within ${readyMsMax / 1_000} s`,
      seen: `first search answered after ${firstSearchMs.toFixed(0)} ms, last 503 after ${lastRefusalMs.toFixed(0)} ms, every organization served after ${(servedMs / 1_000).toFixed(1)} s`,
      held: Number.isFinite(firstSearchMs + servedMs) && firstSearchMs <= readyMsMax && lastRefusalMs <= readyMsMax,
    },
  ];
  if (storedMs === undefined) return rows;
  const promised = `Redis has every balance again within ${readyMsMax / 1_000} s`;
  return [...rows, { what, promised, seen: `${storedMs.toFixed(0)} ms`, held: storedMs <= readyMsMax }];
}

/** Milliseconds from Redis' return to the first answered search, and to the last refusal (0 without one). */
function readyAfter({ traffic, backAtMs }: Loss) {
  const endMs = ({ answer }: CheckedAnswer) => answer.beganAtMs + answer.ms - backAtMs;
  const checked = traffic.afterLoss;
  const searches = checked.filter(({ what, answer }) => what === "search" && answer.status === 200).map(endMs);
  const refusals = checked.filter(({ verdict }) => verdict === "refused").map(endMs);
  return { firstSearchMs: Math.min(...searches), lastRefusalMs: Math.max(0, ...refusals) };
}
