import { afterAll, beforeAll, expect, test } from "vitest";
import { Service } from "../harness/processes/service.ts";
import { type SerperStub, startSerperStub } from "../harness/stubs/serper-stub.ts";

const priceMils = 5;

let service: Service;
let stub: SerperStub;
beforeAll(async () => {
  stub = await startSerperStub();
  service = await Service.start({ apis: 2, workers: 1, environment: stub.settings });
});
afterAll(() => Promise.all([service.stop(), stub.close()]));

test("200 searches that race for the last credits through two APIs spend them exactly once", async () => {
  const affordable = 40;
  const { organizationId, token } = await service.organization({ creditMils: affordable * priceMils, terms: {} });

  const attempts = await Promise.all(
    Array.from({ length: 200 }, (_, n) => service.search(token, { keyword: `race ${n}` }, { api: n % 2 })),
  );

  const count = (status: number) => attempts.filter((attempt) => attempt.status === status).length;
  expect({ answered: count(200), refused: count(402) }).toEqual({ answered: affordable, refused: 200 - affordable });
  for (const { body } of attempts.filter(({ status }) => status === 402)) {
    expect(body.error).toMatchObject({ code: "out_of_credits", details: { priceMils, action: "topup" } });
  }
  const remaining = attempts.filter(({ status }) => status === 200).map(({ body }) => body.creditsRemaining);
  expect(Math.min(...remaining)).toBe(0);
  await service.rest();
  expect((await service.usage(token)).body.creditBalanceMils).toBe(0);
  const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
  expect(charges).toHaveLength(affordable);
  expect(await service.verify()).toMatchObject({ ok: true });
});

test("the refusal tells an empty balance from one that is held by searches in flight", async () => {
  const { token } = await service.organization({ creditMils: priceMils });
  const release = stub.hold();
  const first = service.search(token, { keyword: "first" });
  await service.until(async () => (await service.usage(token)).body.creditBalanceMils === 0);

  const refused = await service.search(token, { keyword: "second" });
  expect(refused).toMatchObject({
    status: 402,
    body: { error: { details: { availableMils: 0, heldMils: priceMils } } },
  });

  release();
  expect((await first).status).toBe(200);
  const empty = await service.search(token, { keyword: "third" });
  expect(empty).toMatchObject({ status: 402, body: { error: { details: { availableMils: 0, heldMils: 0 } } } });
});

test("the plan limits searches in flight, and a refused one takes neither a hold nor a place in the window", async () => {
  const { organizationId, token } = await service.organization({ terms: { concurrency: 2 } });
  const release = stub.hold();
  const running = [1, 2].map((n) => service.search(token, { keyword: `running ${n}` }));
  await service.until(async () => (await service.holdsOf(organizationId)).open === 2);

  const before = (await service.usage(token)).headers.get("ratelimit");
  const refused = await service.search(token, { keyword: "one too many" });
  expect(refused).toMatchObject({
    status: 429,
    body: { error: { code: "rate_limited", details: { reason: "concurrency", retryAfterMs: 1_000, limit: 2 } } },
  });
  expect(refused.body.error.details).not.toHaveProperty("windowSeconds");
  expect(leftOf(refused.headers.get("ratelimit"))).toBe(leftOf(before));
  expect((await service.holdsOf(organizationId)).open).toBe(2);
  release();
  for (const search of running) expect((await search).status).toBe(200);
});

test("a full rate-limit window refuses with the time until it ends, and takes no hold", async () => {
  const { organizationId, token } = await service.organization({ terms: { windowLimit: 3, windowSeconds: 3_600 } });
  for (let n = 0; n < 3; n += 1) expect((await service.search(token, { keyword: `w ${n}` })).status).toBe(200);

  const refused = await service.search(token, { keyword: "fourth" });
  expect(refused).toMatchObject({
    status: 429,
    body: { error: { code: "rate_limited", details: { reason: "window", limit: 3, windowSeconds: 3_600 } } },
  });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(refused.headers.get("ratelimit-policy")).toBe('"default";q=3;w=3600');
  expect(await service.holdsOf(organizationId)).toEqual({ open: 0, heldMils: 0 });
  expect((await service.usage(token)).status).toBe(429);
});

const leftOf = (header: string | null) => /;r=(\d+);/.exec(header ?? "")?.[1];
