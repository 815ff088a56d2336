import { afterAll, beforeAll, expect, test } from "vitest";
import { Service } from "../harness/processes/service.ts";

let service: Service;
beforeAll(async () => {
  service = await Service.start({ environment: { SEARCH_DEADLINE_MS: "5000" } });
});
afterAll(() => service.stop());

/** Side by side, because each waits for the sandbox; the last test needs the service for itself. */
test.concurrent.each([
  { keyword: "sandbox:error", status: 502, code: "engine_error", reason: "provider_unavailable" },
  { keyword: "sandbox:refused", status: 502, code: "engine_error", reason: "provider_refused" },
  { keyword: "sandbox:garbage", status: 502, code: "engine_error", reason: "unreadable_answer" },
  { keyword: "sandbox:timeout", status: 504, code: "engine_timeout", reason: "engine_timeout" },
])("a search that ends as $status ($keyword) costs nothing", async ({ keyword, status, code, reason }) => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const answer = await service.search(token, { keyword });
  expect(answer).toMatchObject({ status, body: { error: { code } } });
  await service.rest();
  expect(await service.ledgerOf(organizationId)).toMatchObject([
    { kind: "grant" },
    { kind: "refund", mils: 0, reason, requestId: answer.body.requestId },
  ]);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(100);

  const line = () => service.apis[0]?.lines.find(({ requestId }) => requestId === answer.body.requestId);
  await service.until(async () => line() !== undefined);
  expect(line()).toMatchObject({ outcome: code, provider: "sandbox", costMicroUsd: 0, queueMs: expect.any(Number) });
});

test.concurrent("under an Idempotency-Key a disconnect changes nothing: the answer is charged once and can be fetched again", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const query = { keyword: "sandbox:slow=3000" };
  const disconnect = new AbortController();
  const search = service.search(token, query, { signal: disconnect.signal, key: "order-1" });
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  disconnect.abort();
  await expect(search).rejects.toThrow();

  const repeat = await service.search(token, query, { key: "order-1" });
  expect(repeat.status).toBe(200);
  expect(repeat.headers.get("idempotency-replayed")).toBe("true");
  await service.rest();
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "charge"]);
});

test("without any worker a search is refused before a hold is placed", async () => {
  const { organizationId, token } = await service.organization();
  const query = { keyword: "remembered" };
  const first = await service.search(token, query, { key: "k" });
  await Promise.all(service.workers.splice(0).map((worker) => worker.stop()));
  await service.until(async () => (await service.search(token, { keyword: "x" })).status === 503);

  const refused = await service.search(token, { keyword: "x" });
  expect(refused.body.error).toMatchObject({ code: "unavailable", details: { reason: "no_workers" } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(await service.holdsOf(organizationId)).toEqual({ open: 0, heldMils: 0 });
  const replay = await service.search(token, query, { key: "k" });
  expect({ status: replay.status, text: replay.text }).toEqual({ status: 200, text: first.text });

  await service.startWorker();
  await service.until(async () => (await service.search(token, { keyword: "x" })).status === 200);
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true });
});
