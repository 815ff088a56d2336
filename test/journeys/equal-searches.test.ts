import { afterAll, beforeAll, expect, test } from "vitest";
import { createQueue } from "../../shared/queue/search-queue.ts";
import { readBacklog } from "../harness/assertions/backlog.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { Service, type Worker } from "../harness/processes/service.ts";
import { reply, type SerperStub, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

const workers = 2;
const slots = 64;

let service: Service;
let stub: SerperStub;
let queue: ReturnType<typeof createQueue>;
beforeAll(async () => {
  stub = await startSerperStub();
  const environment = { ...stub.settings, WORKER_CONCURRENCY: String(slots / workers) };
  service = await Service.start({ apis: 2, workers, environment });
  queue = createQueue({ url: service.redisServer.url });
});
afterAll(async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await queue.close();
  await Promise.all([service.stop(), stub.close()]);
});

/** How many provider calls a piece of work causes. */
async function callsDuring(work: () => Promise<void>): Promise<number> {
  const before = stub.requests.length;
  await work();
  return stub.requests.length - before;
}

const callsProvider = async (worker: Worker) =>
  (await Exposition.of(worker)).value('provider_calls_running{provider="serper"}') === 1;

test("a hundred equal searches of four organizations cause one provider call, and each is charged", async () => {
  const organizations = await Promise.all([1, 2, 3, 4].map(() => service.organization()));
  const calls = await callsDuring(async () => {
    // A search that is enqueued after the answer came may not use it, so no worker begins before all are enqueued.
    await queue.pause();
    const searches = organizations.flatMap(({ token }) =>
      Array.from({ length: 25 }, (_, n) => service.search(token, { keyword: "a hundred" }, { api: n % 2 })),
    );
    await service.until(async () => (await readBacklog(service.redis)).waiting === searches.length);
    // The answer is shared only if others wait for it, so the provider replies once both workers are full.
    const release = stub.hold();
    await queue.resume();
    await service.untilRunning(slots);
    release();
    const answers = await Promise.all(searches);
    expect(answers.map(({ status, body }) => [status, body.creditsCharged])).toEqual(answers.map(() => [200, 5]));
    expect(new Set(answers.map(({ body }) => JSON.stringify(body.results))).size).toBe(1);
    expect(new Set(answers.map(({ body }) => body.requestId)).size).toBe(100);
  });
  expect(calls).toBe(1);
  for (const { token } of organizations) expect((await service.usage(token)).body.creditBalanceMils).toBe(875);
});

test("a target domain keeps the results of that domain and its subdomains, with their ranks on the whole page", async () => {
  const links = ["https://a.example/", "https://www.b.example/", "https://notb.example/", "https://shop.b.example/x"];
  stub.otherwise = reply(200, { organic: links.map((link) => ({ title: link, link })) });
  const { token } = await service.organization();
  const { body } = await service.search(token, { keyword: "a target", targetDomain: "https://www.b.example/any" });
  stub.otherwise = tenOrganic;
  expect(body.query.targetDomain).toBe("b.example");
  expect(body.results.map(({ rank, domain }: { rank: number; domain: string }) => [rank, domain])).toEqual([
    [2, "b.example"],
    [4, "shop.b.example"],
  ]);
});

test("when the worker that calls the provider for others is killed, another calls it and all are answered", async () => {
  const release = stub.hold();
  const { token } = await service.organization();
  const search = () => service.search(token, { keyword: "a kill" });
  const before = stub.requests.length;
  const first = search();
  await service.until(async () => stub.requests.length > before);
  const others = Array.from({ length: 5 }, search);
  await service.untilRunning(6);
  for (const worker of service.workers) if (await callsProvider(worker)) worker.kill("SIGKILL");
  release();
  expect((await Promise.all([first, ...others])).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
});

test("a caller that disconnects does not cost an equal search its answer", async () => {
  const { token, organizationId } = await service.organization();
  const calls = await callsDuring(async () => {
    const release = stub.hold();
    const disconnect = new AbortController();
    const first = service.search(token, { keyword: "a disconnect" }, { signal: disconnect.signal });
    const disconnected = first.catch(() => "disconnected");
    await service.untilRunning(1);
    const second = service.search(token, { keyword: "a disconnect" });
    await service.untilRunning(2);
    disconnect.abort();
    expect(await disconnected).toBe("disconnected");
    // The first one keeps its concurrency slot until the call that both share has ended, but no mils.
    await service.until(async () => (await service.holdsOf(organizationId)).heldMils === 5);
    release();
    expect((await second).status).toBe(200);
  });
  expect(calls).toBe(1);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(995);
});
