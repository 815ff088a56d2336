import { afterEach, expect, test } from "vitest";
import { queueKeys } from "../../shared/queue/search-queue.ts";
import { admit, keysOf } from "../../shared/credits/holds.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";

const plan = {
  code: "x",
  priceMils: 5,
  windowLimit: 60,
  windowSeconds: 60,
  concurrency: 5,
  startingGrantMils: 0,
  operations: [],
};
const key = { hash: "h", fingerprint: "f" };

let service: Service;
afterEach(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await service.stop();
});

test("a killed worker's search is taken over and answered while its caller waits, and charged once", async () => {
  service = await Service.start({ workers: 2 });
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const searches = [1, 2, 3, 4].map((n) => service.search(token, { keyword: `sandbox:slow=1000 ${n}` }));
  await service.until(async () => (await service.redis.llen(queueKeys.running)) === 4);
  service.workers[0]?.kill("SIGKILL");

  for (const { status, body } of await Promise.all(searches)) {
    expect(status).toBe(200);
    expect(body.creditsCharged).toBe(5);
  }
  await service.rest();
  expect((await service.usage(token)).body.creditBalanceMils).toBe(80);
  expect((await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge")).toHaveLength(4);
});

test("a worker that was stopped for longer than its lock and goes on changes nothing", async () => {
  service = await Service.start({ workers: 2 });
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const searches = [1, 2, 3, 4].map((n) => service.search(token, { keyword: `sandbox:slow=500 ${n}` }));
  await service.until(async () => (await service.redis.llen(queueKeys.running)) === 4);
  service.workers[0]?.kill("SIGSTOP");
  for (const { status } of await Promise.all(searches)) expect(status).toBe(200);
  service.workers[0]?.kill("SIGCONT");

  await service.rest();
  const deciding = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind !== "grant");
  expect(deciding).toHaveLength(4);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(80);
});

test("what a killed API had in flight is given back once nobody can be answered any more", async () => {
  service = await Service.start({ apis: 2, environment: { SEARCH_DEADLINE_MS: "2000" } });
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const lost = [1, 2, 3].map((n) => service.search(token, { keyword: `sandbox:timeout ${n}` }).catch(() => "gone"));
  await service.until(async () => (await service.holdsOf(organizationId)).open === 3);
  service.apis[0]?.kill("SIGKILL");
  expect(await Promise.all(lost)).toEqual(["gone", "gone", "gone"]);

  await service.until(async () => (await service.holdsOf(organizationId)).open === 0);
  await service.rest();
  expect((await service.usage(token, 1)).body.creditBalanceMils).toBe(100);
});

test("a charge whose API was killed before it could deliver is found and given back", async () => {
  service = await Service.start({ apis: 2 });
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const lost = service.search(token, { keyword: "sandbox:slow=1000" }).catch(() => "gone");
  await service.until(async () => (await service.redis.llen(queueKeys.running)) === 1);
  service.apis[0]?.kill("SIGKILL");
  await lost;
  const isCharged = async () => (await service.ledgerOf(organizationId)).at(-1)?.kind === "charge";
  await service.until(isCharged);

  // Five minutes later, as far as Postgres can tell.
  await service.age();
  await service.until(async () => (await service.ledgerOf(organizationId)).at(-1)?.kind === "reversal");
  expect((await service.ledgerOf(organizationId)).at(-1)).toMatchObject({ mils: 5, reason: "undelivered" });
  await service.until(async () => (await service.usage(token, 1)).body.creditBalanceMils === 100);
  const ofWorker = () => Promise.all(service.workers.map((worker) => Exposition.of(worker)));
  await service.until(async () => (await ofWorker())[0]?.value('reversed_mils_total{reason="undelivered"}') === 5);
  expect((await ofWorker())[0]?.value("charged_mils_total")).toBe(5);
});

test("a search whose job never existed is ended by the sweeper, and its key is free again", async () => {
  service = await Service.start({ environment: { SEARCH_DEADLINE_MS: "1500" } });
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  await service.usage(token); // Its token was used: the sweeper looks at this organization.
  const request = { organizationId, requestId: "req_lost", priceMils: 5, budgetMs: 100, plan, key, closed: false };
  expect(await admit(service.redis, request)).toMatchObject({ outcome: "held" });

  await service.until(async () => (await service.holdsOf(organizationId)).open === 0);
  expect((await service.ledgerOf(organizationId)).at(-1)).toMatchObject({ kind: "refund", reason: "abandoned" });
  const again = { ...request, requestId: "req_again", budgetMs: 60_000 };
  await service.until(async () => (await admit(service.redis, again)).outcome === "held");
  await service.redis.flushall();
});

test("a hold that was left behind long ago is ended as soon as a worker looks again", async () => {
  service = await Service.start({ workers: 0 });
  const { organizationId } = await service.organization({ creditMils: 100 }); // Nobody uses its token.
  await storeBalance(service.redis, organizationId, { balanceMils: 100, version: 1 });
  const request = { organizationId, requestId: "req_old", priceMils: 5, budgetMs: 0, plan, key, closed: false };
  expect(await admit(service.redis, request)).toMatchObject({ outcome: "held" });
  await service.redis.hset(keysOf(organizationId).holds, "req_old", "5:0:h"); // Its deadline is long past.

  await service.startWorker();
  await service.until(async () => (await service.holdsOf(organizationId)).open === 0);
  expect((await service.ledgerOf(organizationId)).at(-1)).toMatchObject({ kind: "refund", reason: "abandoned" });
});

test("API and worker stop cleanly on SIGTERM: what is under way is answered, and the exit code is 0", async () => {
  service = await Service.start({ workers: 2 });
  const { token } = await service.organization({ creditMils: 100 });
  const searches = [1, 2, 3].map((n) => service.search(token, { keyword: `sandbox:slow=1500 ${n}` }));
  await service.until(async () => (await service.redis.llen(queueKeys.running)) === 3);

  const [workerCode, apiCode, answers] = await Promise.all([
    service.workers[0]?.stop(),
    service.apis[0]?.stop(),
    Promise.all(searches),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect({ workerCode, apiCode }).toEqual({ workerCode: 0, apiCode: 0 });
  await service.rest();
});

test("a stopping worker hands back what does not end in time, and another one answers it", {
  timeout: 60_000,
}, async () => {
  service = await Service.start({ workers: 1 });
  const { token } = await service.organization({ creditMils: 100 });
  const search = service.search(token, { keyword: "sandbox:slow=12000" });
  await service.until(async () => (await service.redis.llen(queueKeys.running)) === 1);
  await service.startWorker();
  expect(await service.workers[0]?.stop()).toBe(0);
  expect(await search).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
  await service.rest();
});
