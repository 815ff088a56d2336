import { afterAll, beforeEach, expect, test } from "vitest";
import { queryFingerprint, searchedPart } from "../../../shared/query/query.ts";
import { TakenLease } from "../../../worker/engine/flight-leases.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { answerOf, FakeGoogle, openWorkerEngine } from "../../harness/processes/worker-engine.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";

const { redis, server } = await openFreshRedis(afterAll);
const fingerprint = queryFingerprint(searchedPart(query()));
const record = `lease:${fingerprint}`;
let google: FakeGoogle;

beforeEach(async () => {
  google = new FakeGoogle();
  google.otherwise = undefined;
  await redis.flushall();
});

const openEngine = () => openWorkerEngine(google, { REDIS_URL: server.url });
const isAwaited = () => eventually(async () => (await redis.hexists(record, "awaited")) === 1);

/** A lease that a worker has acquired with a job, and that does not expire. */
async function leaseWithJob(token: string): Promise<TakenLease> {
  await redis.hset(record, "holder", token);
  return new TakenLease(redis, fingerprint, token);
}

test("a flight whose lease was acquired with its job shares its answer", async () => {
  const [one, other] = await Promise.all([openEngine(), openEngine()]);
  const began = one.search({}, { lease: await leaseWithJob("req:1") });
  const waiting = other.search();
  await google.hasSearches(1);
  await isAwaited();
  google.answer(0, answerOf());
  expect(await began).toMatchObject({ from: "provider", payable: { flight: "req:1" } });
  expect(await waiting).toMatchObject({ from: "shared", payable: { flight: "req:1" } });
});

test("a search that joins a flight of its worker leaves that the lease that was acquired with its job", async () => {
  const worker = await openEngine();
  await leaseWithJob("elsewhere");
  const first = worker.search();
  await isAwaited();
  const second = worker.search({}, { lease: await leaseWithJob("req:2") });
  await google.hasSearches(1);
  google.answer(0, answerOf());
  expect([(await first).from, (await second).from]).toEqual(["provider", "shared"]);
});

test("a lease is neither used nor released for another query, and is released once", async () => {
  const lease = await leaseWithJob("req:1");
  expect(lease.use("another")).toBeUndefined();
  await lease.release();
  expect(await redis.exists(record)).toBe(0);
  await leaseWithJob("req:1");
  await lease.release();
  expect(await redis.exists(record)).toBe(1);
});
