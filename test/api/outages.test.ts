import { once } from "node:events";
import { afterAll, expect, test } from "vitest";
import { writeHeartbeat, removeHeartbeat } from "../../shared/queue/worker-heartbeats.ts";
import { startProxy } from "../harness/servers/proxy.ts";
import { signIn } from "../harness/clients/page-visitor.ts";
import { sendRaw } from "../harness/clients/raw-http.ts";
import { endlessWindow, expectNoTrace, refusalIn } from "../harness/fixtures/refusals.ts";
import { type Answer, type Api, type Organization, Service } from "../harness/processes/service.ts";

/** The API's answers while a dependency is unavailable. No worker runs here, so no search is answered. */

const service = await Service.start({ workers: 0, end: afterAll });
const postgresProxy = await startProxy(service.database.options.connectionString ?? "", afterAll);
await service.startApi({ DATABASE_URL: postgresProxy.url });

const own = 0;
const behindProxy = 1;

/** An error together with its Retry-After header. */
function refusalWithRetry(answer: Answer | undefined) {
  return { ...refusalIn(answer), retryAfter: answer?.headers.get("retry-after") };
}

const unavailable = (reason: string, retryAfterMs = 1_000) => ({
  code: "unavailable",
  details: { reason, retryAfterMs },
  retryAfter: String(retryAfterMs / 1_000),
});

test("an API without workers is ready; one that cannot read them is not, and says so in /readyz and its metrics", async () => {
  const readiness = async () => (await fetch(`${service.apis[own]?.opsUrl}/readyz`)).text();
  const ready = '{"ready":true,"missing":[]}';
  expect(await readiness()).toBe(ready);
  const { token } = await service.organization();
  expect(refusalWithRetry(await service.search(token, { keyword: "a" }))).toEqual(unavailable("no_workers"));
  expect((await service.usage(token)).status).toBe(200);

  await service.redis.set("workers", "not a sorted set");
  await service.until(async () => (await readiness()) === '{"ready":false,"missing":["workers_read"]}');
  expect(await metricIs('readiness_check_passed{check="workers_read"} 0')).toBe(true);
  await service.redis.del("workers");
  await service.until(async () => (await readiness()) === ready);
});

test("a search is refused while the queue is too long for its deadline, with the time to retry", async () => {
  // A worker whose searches take 1,000 seconds. Its heartbeat lies in the future, so it does not expire during the test.
  const [seconds] = await service.redis.time();
  const busy = {
    concurrency: 1,
    slotsCeiling: 1,
    runMs: 1e6,
    reachesPostgres: true,
    atMs: (Number(seconds) + 100) * 1_000,
  };
  await writeHeartbeat(service.redis, "busy", busy);
  await service.until(() => metricIs("workers_reporting 1"));
  const caller = new AbortController();
  const waiting: Promise<unknown>[] = [];
  for (const depth of [1, 2]) {
    const { token } = await service.organization();
    waiting.push(service.search(token, { keyword: "a" }, { signal: caller.signal }).catch(() => undefined));
    await service.until(() => metricIs(`queue_depth ${depth}`));
  }

  const organization = await service.organization({ terms: endlessWindow });
  const answer = await expectNoTrace(service, organization, () => service.search(organization.token, { keyword: "b" }));
  expect(refusalWithRetry(answer)).toEqual(unavailable("queue_too_long", 30_000));

  caller.abort();
  await Promise.all(waiting);
  await removeHeartbeat(service.redis, "busy");
  await service.until(() => metricIs("workers_reporting 0"));
});

async function metricIs(line: string): Promise<boolean> {
  const text = await (await fetch(`${service.apis[own]?.opsUrl}/metrics`)).text();
  return text.split("\n").includes(line);
}

/** A page at this API that has had its first live update. @returns waits until its stream ends; rejects if it breaks. */
async function openStream(api: number): Promise<() => Promise<void>> {
  const { events } = await (await signIn(service, await service.organization(), { api })).follow();
  await events.next();
  return async () => {
    while (!(await events.next()).done);
  };
}

test("an API that shuts down ends its streams of live updates at once, refuses a search whose body arrives then, closes its connection and exits cleanly", async () => {
  const organization = await service.organization({ terms: endlessWindow });
  const api = await service.startApi();
  const untilStreamEnd = await openStream(service.apis.indexOf(api));
  const exited = once(api.child, "exit");
  const body = '{"keyword":"a"}';
  const head = ["POST /v1/serp/search HTTP/1.1", "Host: a", "Content-Type: application/json"];
  head.push(`Authorization: Bearer ${organization.token}`, `Content-Length: ${body.length}`, "", "");
  const answer = await expectNoTrace(service, organization, async () => {
    const { answers, closed } = await sendRaw(api.url, head.join("\r\n"), {
      afterwards: async () => {
        // Once its head has arrived, the request is in flight when the shutdown begins.
        await service.until(() => isUsed(organization));
        api.kill("SIGTERM");
        await untilStreamEnd();
        await service.until(() => refusesConnections(api));
        return body;
      },
    });
    expect(closed).toBe(true);
    return answers[0];
  });
  expect(refusalWithRetry(answer)).toEqual(unavailable("shutting_down"));
  const [exitCode] = await exited;
  expect(exitCode).toBe(0);
  expect(api.errors).toEqual([]);
});

async function isUsed({ tokenId }: Organization): Promise<boolean> {
  const { rowCount } = await service.database.query("select from tokens where id = $1 and last_used_at is not null", [
    tokenId,
  ]);
  return rowCount === 1;
}

const refusesConnections = async (api: Api) =>
  fetch(api.url).then(
    () => false,
    () => true,
  );

test("without Postgres authentication fails with 503, and works again once Postgres is back", async () => {
  const organization = await service.organization({ terms: endlessWindow });
  postgresProxy.cut();
  const { token } = organization;
  const answer = await expectNoTrace(service, organization, async () => {
    expect(refusalWithRetry(await service.usage(token, behindProxy))).toEqual(unavailable("postgres_unreachable"));
    return service.search(token, { keyword: "a" }, { api: behindProxy });
  });
  expect(refusalWithRetry(answer)).toEqual(unavailable("postgres_unreachable"));
  postgresProxy.mend();
  await service.until(async () => (await service.usage(token, behindProxy)).status === 200);
});

test("once the last worker has stopped a search is refused without a hold, and a key still replays its answer", async () => {
  const { organizationId, token } = await service.organization();
  await service.startWorker();
  const query = { keyword: "remembered" };
  const replay = () => service.search(token, query, { key: "k" });
  await service.until(async () => (await replay()).status === 200);
  const { text } = await replay();
  await service.rest(organizationId);
  await Promise.all(service.workers.splice(0).map((worker) => worker.stop()));
  await service.until(async () => (await service.search(token, { keyword: "x" })).status === 503);
  expect(refusalWithRetry(await service.search(token, { keyword: "x" }))).toEqual(unavailable("no_workers"));
  expect(await service.holdsOf(organizationId)).toEqual({ open: 0, heldMils: 0 });
  expect(await replay()).toMatchObject({ status: 200, text });
});

test("a stream of live updates ends when Redis is lost, and its slot is freed", async () => {
  const untilEnd = await openStream(own);
  const { port } = service.redisServer;
  await service.redisServer.stop();
  await untilEnd().catch(() => undefined);
  await service.restartRedis(port);
  await expect.poll(() => metricIs("live_streams_open 0")).toBe(true);
  await service.until(async () => (await fetch(`${service.apis[own]?.opsUrl}/readyz`)).ok);
});

test("without Redis a search is refused, and usage still returns the balance", async () => {
  const { token } = await service.organization();
  service.redisServer.kill("SIGKILL");
  await service.redisServer.exited;

  expect(refusalWithRetry(await service.search(token, { keyword: "a" }))).toEqual(unavailable("redis_unreachable"));
  const usage = await service.usage(token);
  expect(usage).toMatchObject({ status: 200, body: { creditBalanceMils: 1_000, plan: "payg" } });
  expect(usage.headers.has("ratelimit")).toBe(false);
  expect(usage.headers.has("ratelimit-policy")).toBe(false);
  // The checks of the token and of the request need no Redis, and still come first.
  expect(refusalIn(await service.search("unknown", {}))).toMatchObject({ code: "unauthenticated" });
  expect(refusalIn(await service.search(token, {}))).toMatchObject({ code: "bad_request" });
  expect(refusalIn(await service.search(token, { keyword: "a", engine: "bing" }))).toMatchObject({
    code: "not_implemented",
  });

  postgresProxy.cut();
  expect(refusalWithRetry(await service.usage(token, behindProxy))).toEqual(unavailable("postgres_unreachable"));
});
