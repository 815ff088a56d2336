import { afterAll, expect, test } from "vitest";
import { summed } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";
import { startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

/** How many searches a worker runs at once, with the default settings and a provider that is slow. */

const stub = await startSerperStub(afterAll);
const service = await Service.start({ environment: stub.settings, end: afterAll });
afterAll(async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});

const ofWorker = (series: string) => () => summed(service.workers, series);

test("slots and calls at once rise while the provider answers none, and every search is answered", async () => {
  const searches = 60; // More than 32 slots and more than 50 calls, with which a worker begins.
  const { token } = await service.organization({ creditMils: 1_000 });
  const release = stub.hold(tenOrganic);
  const answers = Array.from({ length: searches }, (_, index) => service.search(token, { keyword: `slow ${index}` }));
  await service.until(async () => stub.requests.length === searches);
  await expect.poll(ofWorker("worker_slots")).toBeGreaterThanOrEqual(64);
  await expect.poll(ofWorker("worker_slots_taken")).toBe(searches);
  expect(await ofWorker('provider_calls_limit{provider="serper"}')()).toBe(100);
  release();
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200));
});
