import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { newToken } from "../../api/tokens/tokens.ts";
import { startGuardedProcess } from "../../local/guarded-process.ts";
import { everythingInPostgres, everythingInRedis } from "../harness/assertions/everything-in-redis.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { Agent } from "../harness/clients/agent.ts";
import type { LogLine } from "../harness/processes/process.ts";
import { startProxy } from "../harness/servers/proxy.ts";
import { hang, disconnect, refusal, reply, startSerperStub } from "../harness/stubs/serper-stub.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { type Answer, Service } from "../harness/processes/service.ts";

const secrets = {
  databasePassword: "canary-database-password",
  redisPassword: "canary-redis-password",
  providerKey: "canary-provider-key",
  idempotencyKey: "canary-idempotency-key",
  unknownToken: newToken(),
};

const stub = await startSerperStub(afterAll);
const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
const wayToPostgres = await startProxy(await databaseWithPassword(), afterAll);
const settings = {
  DATABASE_URL: wayToPostgres.url,
  REDIS_URL: await redisWithPassword(),
  SERP_PROVIDERS: "serper",
  SERPER_BASE_URL: stub.url,
  SERPER_API_KEY: secrets.providerKey,
  LOG_LEVEL: "trace",
};
// The deadline belongs to the API that admits a search. The second API is for the one search that has to time out.
const apis = [
  await service.startApi(settings),
  await service.startApi({ ...settings, SEARCH_DEADLINE_MS: "5000" }),
] as const;
const [api] = apis;
const worker = await service.startWorker(settings);
for (const each of apis) await service.until(async () => (await Exposition.of(each)).value("workers_reporting") === 1);

async function databaseWithPassword(): Promise<string> {
  const role = `canary_${process.pid}`;
  await asOwner(service.databaseUrl, `create role ${role} login superuser password '${secrets.databasePassword}'`);
  const url = new URL(service.databaseUrl);
  url.username = role;
  url.password = secrets.databasePassword;
  return url.href;
}

async function redisWithPassword(): Promise<string> {
  await service.redis.call("ACL", "SETUSER", "canary", "on", `>${secrets.redisPassword}`, "~*", "&*", "+@all");
  const url = new URL(service.redisServer.url);
  url.username = "canary";
  url.password = secrets.redisPassword;
  return url.href;
}

/** The lines about requests; a line comes a moment after its answer. */
async function linesOf(requestId: string): Promise<LogLine[]> {
  const find = () => api.lines.filter((line) => line.msg === "request" && line.requestId === requestId);
  await service.until(async () => find().length > 0);
  return find();
}

const anyMs = expect.any(Number);
const anyWorker = expect.stringMatching(/^worker_/);

test("a search is one log line with caller, outcome, duration and cost", async () => {
  const { organizationId, token, tokenId } = await service.organization();
  const { body } = await service.search(token, { keyword: "garden pump", depth: 15 });
  expect(await linesOf(body.requestId)).toEqual([
    {
      level: 30,
      time: expect.any(Number),
      process: "api",
      pid: api.child.pid,
      msg: "request",
      requestId: body.requestId,
      address: "127.0.0.1",
      organizationId,
      tokenId,
      route: "/v1/serp/search",
      status: 200,
      ms: anyMs,
      outcome: "answered",
      chargedMils: 5,
      worker: anyWorker,
      provider: "serper",
      from: "provider",
      calls: [
        { provider: "serper", outcome: "ok", ms: anyMs, costMicroUsd: 1_000 },
        { provider: "serper", outcome: "ok", ms: anyMs, costMicroUsd: 1_000 },
      ],
      costMicroUsd: 2_000,
      queueMs: anyMs,
      runMs: anyMs,
    },
  ]);
});

test("a search is one line of the worker too, with the same request id and worker", async () => {
  const { token } = await service.organization();
  const { body } = await service.search(token, { keyword: "rain barrel" });
  const [line] = await linesOf(body.requestId);
  const find = () => worker.lines.filter(({ msg, requestId }) => msg === "search" && requestId === body.requestId);
  await service.until(async () => find().length > 0);
  expect(find()).toEqual([
    {
      level: 30,
      time: anyMs,
      process: "worker",
      pid: worker.child.pid,
      msg: "search",
      requestId: body.requestId,
      worker: line?.worker,
      outcome: "answered",
      decided: "charge",
      chargedMils: 5,
      provider: "serper",
      from: "provider",
      calls: [{ provider: "serper", outcome: "ok", ms: anyMs, costMicroUsd: 1_000 }],
      costMicroUsd: 1_000,
      queueMs: anyMs,
      runMs: anyMs,
    },
  ]);
});

test("a search that ran out of time at a worker that hangs names that worker", async () => {
  const { token } = await service.organization();
  const [answered] = await linesOf((await service.search(token, { keyword: "kettle" })).body.requestId);
  stub.next.push(hang);
  const late = service.search(token, { keyword: "teapot" }, { api: 1 });
  await service.until(async () => stub.requests.some(({ body }) => body.q === "teapot"));
  worker.kill("SIGSTOP");
  const { body } = await late.finally(() => worker.kill("SIGCONT"));
  const find = () => apis[1].lines.filter(({ msg, requestId }) => msg === "request" && requestId === body.requestId);
  await service.until(async () => find().length > 0);
  expect(find()).toMatchObject([{ status: 504, outcome: "engine_timeout", worker: answered?.worker }]);
});

test("a replay is a log line of its own, with 0 mils charged", async () => {
  const { token } = await service.organization();
  const first = await service.search(token, { keyword: "tea" }, { key: "k" });
  await service.search(token, { keyword: "tea" }, { key: "k" });
  const find = () => api.lines.filter(({ outcome }) => outcome === "replayed");
  await service.until(async () => find().length > 0);
  expect(find()).toMatchObject([{ status: 200, chargedMils: 0, requestId: expect.stringMatching(/^req_/) }]);
  expect(await linesOf(first.body.requestId)).toMatchObject([{ outcome: "answered", chargedMils: 5 }]);
});

test("a refused or failed search is one log line with its code and reason", async () => {
  const { token } = await service.organization({ creditMils: 5 });
  stub.next.push(refusal(403, "Unauthorized."));
  const failed = await service.search(token, { keyword: "tea" });
  const malformed = await service.search(token, { keyword: "" });
  const stranger = await service.search("none", { keyword: "tea" });
  expect(await linesOf(failed.body.requestId)).toMatchObject([
    { level: 40, status: 502, outcome: "engine_error", reason: "provider_refused", ms: anyMs },
  ]);
  expect(await linesOf(malformed.body.requestId)).toMatchObject([{ level: 30, status: 400, outcome: "bad_request" }]);
  expect(await linesOf(stranger.body.requestId)).toMatchObject([{ status: 401, outcome: "unauthenticated" }]);
});

test("a tool that fails is logged at the level of the same error over HTTP", async () => {
  const { token } = await service.organization();
  const agent = await Agent.connect(service, token);
  stub.next.push(refusal(403, "Unauthorized."));
  const failed = await agent.call("serp.search", { keyword: "tea" });
  const malformed = await agent.call("serp.search", { keyword: "" });
  await agent.close();
  expect(await linesOf(failed.body.requestId)).toMatchObject([{ level: 40, status: 200, outcome: "engine_error" }]);
  expect(await linesOf(malformed.body.requestId)).toMatchObject([{ level: 30, status: 200, outcome: "bad_request" }]);
});

test("no secret is in a log line, an error body, a metric, Postgres or Redis", async () => {
  const { token } = await service.organization();
  const never = [token, ...Object.values(secrets)];
  const answers = await goodAndBad(token);
  const metrics = await Promise.all([...apis, worker].map(async (process) => (await Exposition.of(process)).text));
  const running = slowSearch(token);
  await service.until(async () => stub.requests.some(({ body }) => body.q === "never answered"));
  const stored = [await everythingInRedis(service.redis), await everythingInPostgres(service.databaseUrl)];
  answers.push(await running, ...(await whileAway(token)));

  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 400, 401, 404, 405, 502, 503, 504]));
  expect(stored[0]).toContain("never answered"); // So it was all looked through.
  expect(stub.requests.every(({ key }) => key === secrets.providerKey)).toBe(true);
  const logs = [...apis, worker].flatMap(({ lines }) => lines).map((line) => JSON.stringify(line));
  expect(logs.some((line) => line.includes("the Redis connection"))).toBe(true);
  const told = [
    ...answers.map(({ text }) => text),
    ...metrics,
    ...stored,
    ...logs,
    ...[...apis, worker].map(({ stderr }) => stderr),
  ];
  for (const secret of never) expect(told.filter((text) => text.includes(secret))).toEqual([]);
});

const slowSearch = (token: string) => {
  stub.next.push(hang);
  return service.search(token, { keyword: "never answered" }, { key: `${secrets.idempotencyKey}-slow`, api: 1 });
};

async function goodAndBad(token: string): Promise<Answer[]> {
  const key = secrets.idempotencyKey;
  const bearer = (value: string) => ({ headers: { authorization: value } });
  const good = [
    await service.search(token, { keyword: "tea" }, { key }),
    await service.search(token, { keyword: "tea" }, { key }),
    await service.search(token, { keyword: "coffee" }),
  ];
  stub.next.push(refusal(403, `Unauthorized: ${secrets.providerKey}`), disconnect, disconnect, reply(200, "no page"));
  const failed = [
    await service.search(token, { keyword: "refused" }),
    await service.search(token, { keyword: "broken" }),
    await service.search(token, { keyword: "unreadable" }),
  ];
  const refused = await Promise.all([
    service.search(token, { keyword: "milk" }, { key }),
    service.search(token, { keyword: "milk" }, { key: `${key} ${"é".repeat(3)}` }),
    service.search(token, { keyword: "tea", device: token, depth: token }),
    service.search(secrets.unknownToken, { keyword: "tea" }),
    service.search(`${token}0`, { keyword: "tea" }),
    service.send("/v1/usage", bearer(`Basic ${token}`)),
    service.send(`/v1/usage?token=${token}`),
    service.send(`/v1/${token}`, bearer(`Bearer ${token}`)),
    service.send("/v1/serp/search", bearer(`Bearer ${token}`)),
  ]);
  return [...good, ...failed, ...refused];
}

/** What is answered while Postgres, and then Redis, breaks away under requests. */
async function whileAway(token: string): Promise<Answer[]> {
  wayToPostgres.cut();
  const withoutPostgres: Answer[] = [];
  await service.until(async () => {
    withoutPostgres.push(await service.usage(token));
    return withoutPostgres.at(-1)?.status === 503;
  });
  wayToPostgres.mend();
  await service.until(async () => (await service.usage(token)).status === 200);
  const { port, kill, exited } = service.redisServer;
  kill("SIGKILL");
  await exited;
  const withoutRedis = await service.search(token, { keyword: "tea" }, { key: secrets.idempotencyKey });
  await worker.line("error on the Redis connection worker");
  await service.restartRedis(port);
  await redisWithPassword();
  return [...withoutPostgres, withoutRedis];
}

/** Runs a program that logs and then sends a message, and reads its log only after that. @returns what it has read so far. */
async function readLate(statements: string): Promise<() => string> {
  const program = `
    import { openLog } from ${JSON.stringify(new URL("../../shared/log.ts", import.meta.url))};
    const log = openLog({ name: "test", level: "info" });
    ${statements}
    setInterval(() => undefined, 60_000);`;
  const logging = await startGuardedProcess(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  onTestFinished(logging.stop);
  await once(logging.process, "message");
  let written = "";
  logging.process.stdout?.on("data", (chunk: Buffer) => {
    written += chunk.toString();
  });
  return () => written;
}

test("the last line comes without a further one, although the write before it was still under way when it was due", async () => {
  const read = await readLate(`
    log.info("x".repeat(4_000_000)); // It fits into no pipe, so its write lasts until the test reads.
    log.info("last");
    setTimeout(() => process.send("due"), 1_000);`);
  await expect.poll(() => read().slice(-100)).toContain('"msg":"last"');
});

test("lines beyond 8 MiB that nothing reads are dropped and counted", async () => {
  const read = await readLate(`
    for (let line = 0; line < 20_000; line += 1) log.info("x".repeat(1_000));
    process.send("logged");`);
  await expect.poll(() => read().slice(-1_000)).toContain("lines of this log were dropped");
  const lines = read().trimEnd().split("\n");
  const { dropped } = z.object({ dropped: z.int() }).parse(JSON.parse(lines.at(-1) ?? ""));
  expect(lines.length - 1 + dropped).toBe(20_000);
  expect(read().length).toBeLessThan(9 * 1_048_576);
});

test("a process ends as usual although the reader of its log is gone", async () => {
  const log = new URL("../../shared/log.ts", import.meta.url).href;
  const script = `import { openLog } from "${log}"; openLog({ name: "test", level: "info" }).fatal("last words"); process.exit(7);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdout.destroy();
  expect(await once(child, "exit")).toEqual([7, null]);
});
