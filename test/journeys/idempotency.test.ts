import { afterAll, beforeAll, expect, test } from "vitest";
import { keysOf } from "../../shared/credits/holds.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { type Answer, Service } from "../harness/processes/service.ts";
import { refusal, type SerperStub, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

let service: Service;
let stub: SerperStub;
beforeAll(async () => {
  stub = await startSerperStub();
  service = await Service.start({ apis: 2, workers: 1, environment: stub.settings });
});
afterAll(() => Promise.all([service.stop(), stub.close()]));

/** Searches that hold credit or wait for the first request of their key. A `cold` admission is not one: it is tried again. */
async function countAdmissions(): Promise<number> {
  const expositions = await Promise.all(service.apis.map((api) => Exposition.of(api)));
  const counts = expositions.flatMap((exposition) =>
    ["held", "waiting"].map((outcome) => exposition.value(`admissions_total{outcome="${outcome}"}`) ?? 0),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Sends all searches while the provider holds its reply back, so that all but the first wait for the first. */
async function sendTogether(count: number, send: (n: number) => Promise<Answer>, then = tenOrganic): Promise<Answer[]> {
  const before = await countAdmissions();
  const release = stub.hold(then);
  const answers = Array.from({ length: count }, (_, n) => send(n));
  await service.until(async () => (await countAdmissions()) === before + count);
  release();
  return Promise.all(answers);
}

test("an idempotent repeat returns the bytes of the first answer and charges nothing", async () => {
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

test("a hundred concurrent requests under one key are charged once and get the same bytes", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 1_000 });
  const answers = await sendTogether(100, (n) =>
    service.search(token, { keyword: "a hundred" }, { key: "same", api: n % 2 }),
  );

  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ headers }) => !headers.get("idempotency-replayed"))).toHaveLength(1);
  await service.rest();
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "charge"]);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(995);
});

test("repeats that wait for the first request share its failure, and the key can be used again afterwards", async () => {
  const { organizationId, token } = await service.organization();
  const send = () => service.search(token, { keyword: "a failure" }, { key: "bad" });
  const answers = await sendTogether(10, send, refusal(503, "Down for maintenance"));
  stub.otherwise = tenOrganic;
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([502]));
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "refund"]);

  const other = await service.search(token, { keyword: "something else" }, { key: "bad" });
  expect(other).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
});

test("a key that was used for another query is refused, both while the first request runs and afterwards", async () => {
  const { organizationId, token } = await service.organization();
  const release = stub.hold();
  const first = service.search(token, { keyword: "the first" }, { key: "mine" });
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  const early = await service.search(token, { keyword: "other" }, { key: "mine" });
  expect(early.body.error.details).toEqual({ reason: "idempotency_key_reused" });
  release();
  expect((await first).status).toBe(200);
  const late = await service.search(token, { keyword: "other" }, { key: "mine" });
  expect(late).toMatchObject({
    status: 400,
    body: { error: { code: "bad_request", details: { reason: "idempotency_key_reused" } } },
  });
});

test("two organizations can use the same key, and each gets its own answer", async () => {
  const one = await service.organization();
  const two = await service.organization();
  const first = await service.search(one.token, { keyword: "tea" }, { key: "shared" });
  const second = await service.search(two.token, { keyword: "tea" }, { key: "shared" });
  expect(second.body.requestId).not.toBe(first.body.requestId);
  expect(second).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
});

test("a repeat gets the stored answer even when the balance is used up", async () => {
  const { token } = await service.organization({ creditMils: 5 });
  const first = await service.search(token, { keyword: "tea" }, { key: "k" });
  expect((await service.search(token, { keyword: "milk" })).status).toBe(402);
  expect((await service.search(token, { keyword: "tea" }, { key: "k" })).text).toBe(first.text);
});

test("after Redis lost the stored answer, a repeat is searched again and not charged, even with an empty balance", async () => {
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

test("an answer is stored under its key for a day", async () => {
  const { organizationId, token } = await service.organization();
  await service.search(token, { keyword: "tea" }, { key: "k" });
  const [record] = await service.redis.keys(keysOf(organizationId).record("*").replace(/[{}]/g, "\\$&"));
  const dayMs = 24 * 3_600_000;
  const leftMs = await service.redis.pttl(record ?? "");
  expect(leftMs).toBeGreaterThan(dayMs - 60_000);
  expect(leftMs).toBeLessThanOrEqual(dayMs);
});
