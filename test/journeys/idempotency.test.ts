import { afterAll, beforeAll, expect, test } from "vitest";
import { keysOf } from "../../shared/credits/holds.ts";
import { Service } from "../harness/processes/service.ts";

let service: Service;
beforeAll(async () => {
  service = await Service.start({ apis: 2, workers: 1 });
});
afterAll(() => service.stop());

test("a repeat answers what the first one answered, byte for byte, and charges nothing", async () => {
  const { organizationId, token } = await service.organization();
  const first = await service.search(token, { keyword: "tea" }, { key: "k1" });
  const before = (await service.usage(token)).headers.get("ratelimit");
  const repeat = await service.search(token, { keyword: " tea ", device: "desktop" }, { key: "k1", api: 1 });

  expect({ status: repeat.status, text: repeat.text }).toEqual({ status: 200, text: first.text });
  expect(repeat.headers.get("idempotency-replayed")).toBe("true");
  expect(repeat.headers.get("x-request-id")).toBe(first.body.requestId);
  expect(first.headers.get("idempotency-replayed")).toBeNull();
  expect(repeat.headers.get("ratelimit")?.split(";t=")[0]).toBe(before?.split(";t=")[0]);
  expect((await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge")).toHaveLength(1);
});

test("a hundred equal requests at once under one key are one charge and a hundred equal answers", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 1_000 });
  const query = { keyword: "sandbox:slow=500" };
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) => service.search(token, query, { key: "same", api: n % 2 })),
  );

  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ headers }) => !headers.get("idempotency-replayed"))).toHaveLength(1);
  await service.rest();
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "charge"]);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(995);
});

test("those who wait on a first request share its failure, and the key is free again afterwards", async () => {
  const { organizationId, token } = await service.organization();
  const query = { keyword: "sandbox:error" };
  const answers = await Promise.all(Array.from({ length: 10 }, () => service.search(token, query, { key: "bad" })));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([502]));
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "refund"]);

  const other = await service.search(token, { keyword: "something else" }, { key: "bad" });
  expect(other).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
});

test("the same key with another query is refused, whether the first has ended or still runs", async () => {
  const { organizationId, token } = await service.organization();
  const slow = service.search(token, { keyword: "sandbox:slow=800" }, { key: "mine" });
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  const early = await service.search(token, { keyword: "other" }, { key: "mine" });
  expect(early.body.error.details).toEqual({ reason: "idempotency_key_reused" });
  await slow;
  const late = await service.search(token, { keyword: "other" }, { key: "mine" });
  expect(late).toMatchObject({
    status: 400,
    body: { error: { code: "bad_request", details: { reason: "idempotency_key_reused" } } },
  });
});

test("two organizations may use the same key; neither sees the other's answer", async () => {
  const one = await service.organization();
  const two = await service.organization();
  const first = await service.search(one.token, { keyword: "tea" }, { key: "shared" });
  const second = await service.search(two.token, { keyword: "tea" }, { key: "shared" });
  expect(second.body.requestId).not.toBe(first.body.requestId);
  expect(second).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
});

test("a remembered answer comes even when the balance is gone", async () => {
  const { token } = await service.organization({ creditMils: 5 });
  const first = await service.search(token, { keyword: "tea" }, { key: "k" });
  expect((await service.search(token, { keyword: "milk" })).status).toBe(402);
  expect((await service.search(token, { keyword: "tea" }, { key: "k" })).text).toBe(first.text);
});

test("when Redis forgot, a repeat is searched anew and charged nothing, even with nothing left to spend", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 5 });
  await service.search(token, { keyword: "tea" }, { key: "k" });
  await service.redis.flushall();
  await service.until(async () => (await service.search(token, { keyword: "x" })).status === 402);

  const repeat = await service.search(token, { keyword: "tea" }, { key: "k" });
  expect(repeat).toMatchObject({ status: 200, body: { creditsCharged: 0, creditsRemaining: 0 } });
  const other = await service.search(token, { keyword: "milk" }, { key: "k" });
  expect(other).toMatchObject({ status: 400, body: { error: { details: { reason: "idempotency_key_reused" } } } });
  await service.rest();
  expect((await service.ledgerOf(organizationId)).at(-1)).toMatchObject({ kind: "refund", reason: "already_paid" });
  expect(await service.verify()).toMatchObject({ ok: true });
});

test("a remembered answer lives for a day and no longer", async () => {
  const { organizationId, token } = await service.organization();
  await service.search(token, { keyword: "tea" }, { key: "k" });
  const [record] = await service.redis.keys(keysOf(organizationId).record("*").replace(/[{}]/g, "\\$&"));
  const dayMs = 24 * 3_600_000;
  const leftMs = await service.redis.pttl(record ?? "");
  expect(leftMs).toBeGreaterThan(dayMs - 60_000);
  expect(leftMs).toBeLessThanOrEqual(dayMs);
});
