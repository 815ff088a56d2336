import { afterAll, beforeAll, expect, test } from "vitest";
import { Exposition } from "../harness/assertions/metrics.ts";
import { Service, type Worker } from "../harness/processes/service.ts";
import { reply, type SerperStub, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

let service: Service;
let stub: SerperStub;
beforeAll(async () => {
  stub = await startSerperStub();
  service = await Service.start({ workers: 2, environment: stub.settings });
});
afterAll(async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await Promise.all([service.stop(), stub.close()]);
});

const callsProvider = async (worker: Worker) =>
  (await Exposition.of(worker)).value('provider_calls_running{provider="serper"}') === 1;

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
