import { afterAll, expect, test } from "vitest";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { Service } from "../harness/processes/service.ts";
import { startProxy } from "../harness/servers/proxy.ts";
import { startSerperStub } from "../harness/stubs/serper-stub.ts";

/** The worker charges a search, its reply is lost, and Postgres answers the API later than the API waits for it. */

/** Time for a slow machine to charge the search, and no longer: the answer comes after it. */
const deadlineMs = 15_000;

const stub = await startSerperStub(afterAll);
const environment = { ...stub.settings, SEARCH_DEADLINE_MS: String(deadlineMs) };
const service = await Service.start({ apis: 0, workers: 0, environment, end: afterAll });
const workersRedis = await startProxy(service.redisServer.url, afterAll);
const apisPostgres = await startProxy(service.databaseUrl, afterAll);
await service.startWorker({ REDIS_URL: workersRedis.url });
await service.startApi({ DATABASE_URL: apisPostgres.url });

test("a charge that the API learns of after it answered 504 is given back at once", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  await service.until(async () => (await service.search(token, { keyword: "warm" })).status === 200);
  await service.rest();
  const charges = async () => (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
  const chargesBefore = await charges();

  const release = stub.hold();
  const searching = service.search(token, { keyword: "charged late" });
  await service.untilRunning(1);
  // Not the replies: the one that carries the job may still be under way.
  workersRedis.silence("requests");
  release();
  await service.until(async () => (await charges()) > chargesBefore);
  apisPostgres.delay(protocolTimes.undoTimeoutMs);
  expect((await searching).status).toBe(504);
  apisPostgres.mend();
  const reversal = { kind: "reversal", reason: "engine_timeout", mils: 5 };
  await service.until(async () => (await service.ledgerOf(organizationId)).at(-1)?.kind === "reversal");
  expect((await service.ledgerOf(organizationId)).at(-1)).toMatchObject(reversal);
});
