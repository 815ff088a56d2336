import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../local/ports.ts";
import { readConfig } from "../../../shared/config.ts";
import { openLog } from "../../../shared/log.ts";
import { openContext } from "../../../shared/process/context.ts";
import { startOpsServer } from "../../../shared/process/ops-server.ts";
import { protocolTimes } from "../../../shared/protocol-times.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { sendRaw } from "../../harness/clients/raw-http.ts";
import { startProxy } from "../../harness/servers/proxy.ts";
import { Service } from "../../harness/processes/service.ts";

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
const wayToPostgres = await startProxy(service.databaseUrl, afterAll);
const log = openLog({ name: "test", level: "silent" });
const settings = { DATABASE_URL: wayToPostgres.url, OPS_ALLOWED_HOSTS: "api.corp.example" };
const [api, worker] = await Promise.all([service.startApi(settings), service.startWorker(settings)]);

const both = () => [api, worker];

const ready = { status: 200, body: { ready: true, missing: [] } };
const missing = (...names: string[]) => ({ status: 503, body: { ready: false, missing: names } });
const apiWithoutRedis = ["redis", "workers_read", "redis api", "redis identity", "redis queue", "redis api-inbox"];
const workerWithoutRedis = [
  "redis",
  "reported",
  "redis worker",
  "redis worker-disconnected",
  "redis worker-queue",
  "redis worker-takes",
];

async function readiness({ opsUrl }: { opsUrl: string }) {
  const response = await fetch(`${opsUrl}/readyz`);
  const body: { ready: boolean; missing: string[] } = JSON.parse(await response.text());
  return { status: response.status, body };
}

const readinessOfBoth = () => Promise.all(both().map(readiness));

const checksOfBoth = () =>
  Promise.all(both().map(async (process) => (await Exposition.of(process)).all("readiness_check_passed")));

const livenessOfBoth = () => Promise.all(both().map(async ({ opsUrl }) => (await fetch(`${opsUrl}/livez`)).status));

test("a process whose dependencies are reachable is live and ready", async () => {
  await expect.poll(readinessOfBoth).toEqual([ready, ready]);
  expect(await livenessOfBoth()).toEqual([200, 200]);
});

test("the ops port answers only GET and HEAD, serves no API path, and forbids caching", async () => {
  for (const { opsUrl } of both()) {
    for (const path of ["/livez", "/readyz?probe=1", "/metrics"]) {
      const { status, headers } = await fetch(opsUrl + path);
      const answer = { path, status, cacheControl: headers.get("cache-control") };
      expect(answer).toEqual({ path, status: 200, cacheControl: "no-store" });
      const head = await fetch(opsUrl + path, { method: "HEAD" });
      expect([head.status, await head.text(), head.headers.get("content-type")]).toEqual([
        200,
        "",
        headers.get("content-type"),
      ]);
    }
    const type = (await fetch(`${opsUrl}/metrics`)).headers.get("content-type");
    expect(type).toMatch(/^text\/plain; version=0\.0\.4/);
    expect((await fetch(`${opsUrl}/v1/usage`)).status).toBe(404);
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const { status, headers } = await fetch(`${opsUrl}/metrics`, { method });
      expect([method, status, headers.get("allow")]).toEqual([method, 405, "GET, HEAD"]);
    }
  }
});

test("no path of the ops port is on the public port", async () => {
  for (const path of ["/livez", "/readyz", "/metrics", "/queues"]) {
    const answer = await service.send(path);
    expect({ path, ...answer }).toMatchObject({ path, status: 404, body: { error: { code: "not_found" } } });
    expect(answer.text).not.toMatch(/# HELP|"ready"|"live"/);
  }
});

test("without Postgres a process is live but not ready, its metrics say so, and it recovers by itself", async () => {
  wayToPostgres.cut();
  await expect.poll(readinessOfBoth).toEqual([missing("postgres"), missing("postgres")]);
  // On a slow machine a check of something else may take too long for once.
  await expect.poll(checksOfBoth).toEqual([
    {
      '{check="postgres"}': 0,
      '{check="redis"}': 1,
      '{check="connections"}': 1,
      '{check="serving"}': 1,
      '{check="workers_read"}': 1,
    },
    { '{check="postgres"}': 0, '{check="redis"}': 1, '{check="connections"}': 1, '{check="reported"}': 1 },
  ]);
  expect(await livenessOfBoth()).toEqual([200, 200]);
  wayToPostgres.mend();
  await expect.poll(readinessOfBoth).toEqual([ready, ready]);
});

test("without Redis a process is live but not ready, and recovers by itself", async () => {
  const { port, kill, exited } = service.redisServer;
  kill("SIGKILL");
  await exited;
  await expect.poll(readinessOfBoth).toEqual([missing(...apiWithoutRedis), missing(...workerWithoutRedis)]);
  expect(await livenessOfBoth()).toEqual([200, 200]);
  await service.restartRedis(port);
  await expect.poll(readinessOfBoth).toEqual([ready, ready]);
});

test("a process whose connection Redis refuses while it serves the others is not ready, and its metrics say so", async () => {
  await service.redis.config("SET", "maxclients", 1);
  const clients = String(await service.redis.client("LIST")).split("\n");
  const takes = clients.find((client) => client.includes(" name=serpmill-worker-takes "));
  await service.redis.client("KILL", "ID", /\bid=(\d+)/.exec(takes ?? "")?.[1] ?? "");
  await expect
    .poll(() => readiness(worker))
    .toMatchObject({ status: 503, body: { missing: expect.arrayContaining(["redis worker-takes"]) } });
  await expect.poll(checksOfBoth).toMatchObject([{}, { '{check="redis"}': 1, '{check="connections"}': 0 }]);
  await service.redis.config("SET", "maxclients", 10_000);
  await expect.poll(readinessOfBoth).toEqual([ready, ready]);
});

test("while Redis takes no writes a process is not ready, and recovers by itself", async () => {
  await service.redis.replicaof("127.0.0.1", 1);
  await expect.poll(async () => (await readinessOfBoth()).map(({ body }) => body.ready)).toEqual([false, false]);
  await service.redis.replicaof("no", "one");
  await expect.poll(readinessOfBoth).toEqual([ready, ready]);
});

test("a check that takes as long as a command to a silent Redis counts as missing, and delays no probe", async () => {
  const databases = { DATABASE_URL: service.processDatabaseUrl, REDIS_URL: service.redisServer.url };
  const config = readConfig({ ...databases, SERP_PROVIDERS: "sandbox" });
  const context = openContext({ config, name: "test", databaseSizeMax: 1, log });
  onTestFinished(() => context.shutdown.run(log));
  const port = await freePort();
  const open = await startOpsServer(context, port);
  open({ checks: { slow: () => sleep(protocolTimes.redisCommandMs) } });
  expect((await readiness({ opsUrl: `http://127.0.0.1:${port}` })).body.missing).toContain("slow");
});

test("a frozen Redis counts as missing", async () => {
  service.redisServer.kill("SIGSTOP");
  try {
    await expect
      .poll(async () => (await readinessOfBoth()).map(({ body }) => body.missing[0]))
      .toEqual(["redis", "redis"]);
  } finally {
    service.redisServer.kill("SIGCONT");
  }
  await expect.poll(readinessOfBoth).toEqual([ready, ready]);
});

// From here on the API has the connection of the queue's dashboard, too.
test("a page of another site cannot read it by pointing its own host name at the port, and any probe is answered", async () => {
  const ask = async (opsUrl: string, path: string, host: string) => {
    const head = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    return { path, host, status: (await sendRaw(opsUrl, head)).answers[0]?.status };
  };
  const metrics = both().map(({ opsUrl }) => ({ opsUrl, path: "/metrics" }));
  const known = [...metrics, { opsUrl: api.opsUrl, path: "/queues" }];
  for (const { opsUrl, path } of [...known, { opsUrl: api.opsUrl, path: "/other" }])
    for (const host of ["attacker.example", "10.0.0.1.attacker.example:3001", "localhost.attacker.example", "a b", "."])
      expect(await ask(opsUrl, path, host)).toEqual({ path, host, status: 421 });
  for (const { opsUrl, path } of known)
    for (const host of ["localhost:3001", "api:3001", "10.0.0.1", "[::1]:3001", "API.corp.example:3001"])
      expect(await ask(opsUrl, path, host)).toEqual({ path, host, status: 200 });
  for (const path of ["/livez", "/readyz"])
    expect(await ask(api.opsUrl, path, "balancer.example")).toEqual({ path, host: "balancer.example", status: 200 });
  // As HAProxy asks.
  const { answers } = await sendRaw(api.opsUrl, "GET /readyz HTTP/1.0\r\n\r\n");
  expect(answers[0]?.status).toBe(200);
});

test("a stopping process is not ready any more while it still serves", async () => {
  const stopping = await service.startApi();
  const stopped = stopping.stop();
  await expect.poll(() => readiness(stopping), { interval: 20 }).toEqual(missing("serving"));
  expect((await fetch(`${stopping.url}/v1/usage`)).status).toBe(401);
  expect(await stopped).toBe(0);
});
