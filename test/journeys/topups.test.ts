import { afterAll, afterEach, expect, test } from "vitest";
import { startProxy } from "../harness/servers/proxy.ts";
import { startStripeService } from "../harness/processes/stripe-stack.ts";
import { eventOf } from "../harness/stubs/stripe-stub.ts";
import { acknowledged, sendEvent, unsigned } from "../harness/clients/topups.ts";

/** Payments while processes and connections fail. Stripe repeats an event until it is acknowledged. */

const { stub, service } = await startStripeService({ apis: 0, workers: 0 });
const [postgres, redis] = await Promise.all([
  startProxy(service.databaseUrl, afterAll),
  startProxy(service.redisServer.url, afterAll),
]);
const startApi = () => service.startApi({ DATABASE_URL: postgres.url, REDIS_URL: redis.url });
await startApi();
afterEach(async () => {
  postgres.mend();
  redis.mend();
  await service.until(async () => (await fetch(`${service.apis[0]?.opsUrl}/readyz`)).ok);
});

const grantsOf = async (organizationId: string) => (await service.ledgerOf(organizationId)).map(({ mils }) => mils);

test("an event that is repeated because its API was killed after the grant is acknowledged and grants nothing more", async () => {
  const { organizationId, token } = await service.organization({ plan: "free", creditMils: 0 });
  const event = eventOf(stub.paid(organizationId, 1_000));
  // Storing the new balance in Redis hangs, so the grant is made and the answer is not sent.
  redis.silence("requests");
  const answer = sendEvent(service, event).catch(() => "no answer");
  await service.until(async () => (await grantsOf(organizationId)).length === 1);
  const [killed] = service.apis.splice(0);
  killed?.kill("SIGKILL");
  expect(await answer).toBe("no answer");

  redis.mend();
  await startApi();
  expect(await sendEvent(service, event)).toMatchObject(acknowledged);
  expect(await grantsOf(organizationId)).toEqual([10_000]);
  expect((await service.usage(token)).body).toEqual({ creditBalanceMils: 10_000, plan: "payg" });
});

test("when the connection breaks around the commit of a grant, the repeated event leads to exactly one grant", async () => {
  for (const landed of [true, false]) {
    const { organizationId } = await service.organization({ creditMils: 0 });
    const event = eventOf(stub.paid(organizationId, 1_000));
    postgres.cutAround(["commit\0"], landed); // The whole statement: a session begins with "read committed".
    expect(await sendEvent(service, event)).toMatchObject({
      status: 503,
      body: { error: { details: { reason: "postgres_unreachable" } } },
    });
    await service.until(async () => (await grantsOf(organizationId)).length === Number(landed));
    expect(await sendEvent(service, event)).toMatchObject(acknowledged);
    expect(await grantsOf(organizationId)).toEqual([10_000]);
  }
});

test("an event that arrives while Postgres is unreachable is not acknowledged, and is credited when Stripe repeats it; a forged one is refused", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 0 });
  const event = eventOf(stub.paid(organizationId, 1_000));
  postgres.cut();
  expect((await sendEvent(service, event)).status).toBe(503);
  expect(await sendEvent(service, event, { signature: "t=1,v1=0" })).toMatchObject(unsigned);
  postgres.mend();
  await service.until(async () => (await sendEvent(service, event)).status === 200);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(10_000);
});

test("a payment is credited while Redis is unreachable, and can be spent once Redis is back", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 0 });
  await service.usage(token);
  redis.cut();
  expect(await sendEvent(service, eventOf(stub.paid(organizationId, 1_000)))).toMatchObject(acknowledged);
  redis.mend();
  await service.startWorker();
  await service.until(async () => (await service.search(token, { keyword: "tea" })).status === 200);
  await service.rest();
  expect(await grantsOf(organizationId)).toEqual([10_000, -5]);
});
