import { beforeAll, expect, test } from "vitest";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { endlessWindow } from "../harness/fixtures/refusals.ts";
import type { Answer, Service } from "../harness/processes/service.ts";
import { stubbedService } from "../harness/processes/usual-stack.ts";
import { refusal, type SerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

let service: Service;
let stub: SerperStub;
beforeAll(async () => {
  ({ service, stub } = await stubbedService({ apis: 2 }));
});

/** Searches that hold credit or wait for the first request of their key. A `balance_missing` admission is not one: it is tried again. */
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

/** How often the APIs have looked for keys in Postgres, each time for a whole batch. */
async function lookUps(): Promise<number> {
  const expositions = await Promise.all(service.apis.map((api) => Exposition.of(api)));
  const counts = expositions.map((exposition) => exposition.value('key_lookup_duration_seconds_count{of="keys"}') ?? 0);
  return counts.reduce((sum, count) => sum + count, 0);
}

test("an idempotent repeat returns the bytes of the first answer and charges nothing", async () => {
  const { organizationId, token } = await service.organization({ terms: endlessWindow });
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

test("under a key a disconnect changes nothing: the answer is charged once and can be fetched again", async () => {
  const { organizationId, token } = await service.organization();
  const before = await countAdmissions();
  const release = stub.hold();
  const caller = new AbortController();
  const left = service.search(token, { keyword: "left" }, { signal: caller.signal, key: "left" });
  await service.untilRunning(1);
  caller.abort();
  await expect(left).rejects.toThrow();
  const repeat = service.search(token, { keyword: "left" }, { key: "left" });
  await service.until(async () => (await countAdmissions()) === before + 2);
  release();
  expect((await repeat).headers.get("idempotency-replayed")).toBe("true");
  await service.rest();
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "charge"]);
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
  expect((await service.search(token, { keyword: "the first" }, { key: "mine" })).text).toBe((await first).text);
});

test("two organizations can use the same key, and each gets its own answer", async () => {
  const one = await service.organization();
  const two = await service.organization();
  const release = stub.hold();
  const first = service.search(one.token, { keyword: "tea" }, { key: "shared" });
  await service.untilRunning(1);
  const second = service.search(two.token, { keyword: "milk" }, { key: "shared" });
  await Promise.race([second, service.untilRunning(2)]);
  release();
  for (const answer of [await first, await second])
    expect(answer).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
  expect((await second).body.requestId).not.toBe((await first).body.requestId);
});

test("after Redis lost everything, a repeat gets the same bytes, and neither the provider nor the credit is asked again", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 5 });
  const first = await service.search(token, { keyword: "tea" }, { key: "k" });
  await service.rest();
  const { length: asked } = stub.requests;
  await service.redis.flushall();

  const repeat = await service.search(token, { keyword: "tea" }, { key: "k", api: 1 });
  expect({ status: repeat.status, text: repeat.text }).toEqual({ status: 200, text: first.text });
  expect(repeat.headers.get("idempotency-replayed")).toBe("true");
  expect(repeat.headers.get("x-request-id")).toBe(first.body.requestId);
  const other = await service.search(token, { keyword: "milk" }, { key: "k" });
  expect(other).toMatchObject({ status: 400, body: { error: { details: { reason: "idempotency_key_reused" } } } });
  expect(stub.requests).toHaveLength(asked);
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "charge"]);
  expect(await service.verify()).toMatchObject({ ok: true });
});

test("when Redis is lost while the first request runs, a repeat runs as well, and both get the answer that was charged", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 10 });
  const release = stub.hold();
  const first = service.search(token, { keyword: "lost" }, { key: "k" });
  await service.untilRunning(1);
  await service.redis.flushall();
  const repeat = service.search(token, { keyword: "lost" }, { key: "k", api: 1 });
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  await service.untilRunning(1);
  release();

  const answers = [await first, await repeat];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ headers }) => headers.get("idempotency-replayed"))).toHaveLength(1);
  await service.rest();
  const entries = await service.ledgerOf(organizationId);
  expect(entries.map(({ kind, reason }) => (kind === "grant" ? kind : `${kind} ${reason ?? ""}`)).toSorted()).toEqual([
    "charge ",
    "grant",
    "refund already_paid",
  ]);
});

test("Redis forgets a key seconds after its search has ended, and never has the answer", async () => {
  const { organizationId, token } = await service.organization();
  const first = await service.search(token, { keyword: "tea" }, { key: "k" });
  await service.rest();
  const pattern = keysOf(organizationId).record("*").replace(/[{}]/g, "\\$&");
  const [record = ""] = await service.redis.keys(pattern);
  expect(await service.redis.memory("USAGE", record)).toBeLessThan(1_000);
  expect(await service.redis.pttl(record)).toBeLessThanOrEqual(protocolTimes.idempotencyEndMs);
  expect(Object.keys(await service.redis.hgetall(record)).toSorted()).toEqual(["answered", "fingerprint", "request"]);
  await service.until(async () => (await service.redis.keys(pattern)).length === 0);
  expect((await service.search(token, { keyword: "tea" }, { key: "k" })).text).toBe(first.text);
  expect(await service.redis.keys(pattern)).toEqual([]);
});

test("searches under keys of an organization without credit cost Postgres a few look-ups a second, however many come", async () => {
  const { token } = await service.organization({ creditMils: 5 });
  const paid = await service.search(token, { keyword: "tea" }, { key: "paid" });
  await service.rest();
  const [before, sentAtMs] = [await lookUps(), performance.now()];
  await Promise.all(
    Array.from({ length: 40 }, async (_, at) => {
      for (let n = 0; n < 25; n += 1) {
        const answer = await service.search(token, { keyword: "x" }, { key: `${at}-${n}`, api: at % 2 });
        expect(answer.status).toBe(402);
      }
    }),
  );
  const again = await service.search(token, { keyword: "tea" }, { key: "paid" });
  expect(again.text).toBe(paid.text);
  const seconds = (performance.now() - sentAtMs) / 1_000;
  // Each API asks ten times a second; and for each of the first searches, before it has refused the organization once.
  expect((await lookUps()) - before).toBeLessThanOrEqual(2 * (10 * seconds + 40));
});
