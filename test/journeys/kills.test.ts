import { expect, test } from "vitest";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { Exposition, seesWorkers } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";
import { type SerperStub, startSerperStub } from "../harness/stubs/serper-stub.ts";

/**
 * Processes die or stop while searches run. Most of a test is waiting for another process to notice, so the tests run
 * side by side, each with a service of its own.
 */

/** Starts a service whose provider is a stub; afterwards verifies its ledger and ends it. */
async function withService(
  { apis, workers, settings }: { apis: number; workers: number; settings?: Record<string, string> },
  use: (service: Service, stub: SerperStub) => Promise<void>,
): Promise<void> {
  const stub = await startSerperStub();
  const service = await Service.start({ apis, workers, environment: { ...stub.settings, ...settings } });
  try {
    await use(service, stub);
    expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  } finally {
    await Promise.all([service.stop(), stub.close()]);
  }
}

/** Begins different searches and waits until a worker runs each of them. */
async function searchesRunning(service: Service, token: string, count: number) {
  const searches = Array.from({ length: count }, (_, n) => service.search(token, { keyword: `pump ${n}` }));
  await service.untilRunning(count);
  return searches;
}

const kindsOf = async (service: Service, organizationId: string) =>
  (await service.ledgerOf(organizationId)).map(({ kind }) => kind);

test.concurrent("a stopping worker hands back a search that does not end in time, and another one answers it", async () => {
  // The search outlasts the ten seconds that a stopping worker waits. The sandbox has no timeout that would end it before.
  const settings = { SERP_PROVIDERS: "sandbox", SEARCH_DEADLINE_MS: "60000" };
  await withService({ apis: 1, workers: 1, settings }, async (service) => {
    const { token } = await service.organization({ creditMils: 100 });
    const search = service.search(token, { keyword: "sandbox:slow=11000" });
    await service.untilRunning(1);
    const stopped = service.workers[0]?.stop();
    await service.startWorker();
    expect(await stopped).toBe(0);
    expect(await search).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
    await service.rest();
  });
});

test.concurrent("a worker that is frozen until others have taken over its searches changes nothing afterwards", () =>
  withService({ apis: 1, workers: 1 }, async (service, stub) => {
    const { organizationId, token } = await service.organization({ creditMils: 100 });
    const release = stub.hold();
    const searches = await searchesRunning(service, token, 4);
    await service.until(async () => stub.requests.length === 4);
    const [frozen] = service.workers;
    if (!frozen) throw new Error("there is no worker");
    frozen.kill("SIGSTOP");
    release();
    await service.startWorker();
    for (const { status } of await Promise.all(searches)) expect(status).toBe(200);

    // Now it reads its own answers, and tries to settle and to reply with them. An orderly stop waits for that.
    frozen.kill("SIGCONT");
    const calls = async () => Object.values((await Exposition.of(frozen)).all("provider_calls_total"));
    await service.until(async () => (await calls()).reduce((sum, count) => sum + count, 0) >= 4);
    expect(await frozen.stop()).toBe(0);
    await service.rest();
    expect(await kindsOf(service, organizationId)).toEqual(["grant", "charge", "charge", "charge", "charge"]);
    expect((await service.usage(token)).body.creditBalanceMils).toBe(80);
  }));

test.concurrent("a search that lost three workers is refunded and given to no fourth, which logs a warning", () =>
  withService({ apis: 1, workers: 1, settings: { SEARCH_DEADLINE_MS: "120000" } }, async (service, stub) => {
    const { organizationId, token } = await service.organization({ creditMils: 100 });
    stub.hold();
    const [search] = await searchesRunning(service, token, 1);
    for (let killed = 1; killed <= 3; killed += 1) {
      await service.until(async () => stub.requests.length === killed);
      service.workers.at(-1)?.kill("SIGKILL");
      await service.startWorker();
    }
    expect(await search).toMatchObject({ status: 500, body: { error: { code: "internal_error" } } });
    await service.rest();
    expect((await service.ledgerOf(organizationId)).at(-1)).toMatchObject({ kind: "refund", reason: "worker_failed" });
    expect(stub.requests).toHaveLength(3);
    const fourth = service.workers.at(-1);
    await fourth?.line("a search lost every worker that had it");
    expect(fourth?.errors).toEqual([]);
  }));

test.concurrent("a worker that is stopped while Redis is away ends in order and logs no error", () =>
  withService({ apis: 0, workers: 1 }, async (service) => {
    const [worker] = service.workers;
    if (!worker) throw new Error("there is no worker");
    await service.until(async () => (await service.redis.exists("maintenance")) === 1);
    const { port } = service.redisServer;
    service.redisServer.kill("SIGKILL");
    expect(await worker.stop()).toBe(0);
    expect(worker.errors).toEqual([]);
    await worker.line("the lease was not given back");
    await service.restartRedis(port);
  }));

// The time that an API with the default deadline waits when it stops passes in a moment.
const hurried = `
  const real = globalThis.setTimeout;
  const hurry = (run, ms, ...rest) => real(run, ms === ${protocolTimes.shutdownStepMs} ? 1 : ms, ...rest);
  globalThis.setTimeout = Object.assign(hurry, real);`;

test.concurrent("an API with a raised deadline that gets SIGTERM waits longer than one with the default, and answers its search", () =>
  withService({ apis: 0, workers: 1, settings: { SEARCH_DEADLINE_MS: "120000" } }, async (service, stub) => {
    const { token } = await service.organization({ creditMils: 100 });
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hurried)}`;
    const api = await service.startApi({ NODE_OPTIONS });
    await service.until(() => seesWorkers(api));
    const release = stub.hold();
    const [search] = await searchesRunning(service, token, 1);
    const stopped = api.stop();
    const isListening = () =>
      fetch(api.url).then(
        () => true,
        () => false,
      );
    await service.until(async () => !(await isListening()));
    release();
    expect(await search).toMatchObject({ status: 200 });
    expect(await stopped).toBe(0);
    expect(api.lines.filter(({ msg = "" }) => msg.includes("did not close cleanly"))).toEqual([]);
  }));
