import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunningProcess } from "../../harness/processes/process.ts";
import { run } from "../../harness/processes/run.ts";
import { Service } from "../../harness/processes/service.ts";
import { usualSettings } from "../../harness/processes/supervised-process.ts";
import { listenOn } from "../../harness/stubs/listen.ts";

const urls = { DATABASE_URL: "postgres://localhost/serpmill", REDIS_URL: "redis://localhost:6379" };

const environment = (settings: Record<string, string>) => ({ ...usualSettings, ...urls, ...settings });

const wrong = { SEARCH_DEADLINE_MS: "canary", SERP_PROVIDERS: "" };
const whatIsWrong = expect.stringMatching(
  /^These settings are missing or wrong:\n {2}SEARCH_DEADLINE_MS: expected [^\n]+\n {2}SERP_PROVIDERS: expected [^\n]+\n?$/,
);

test("a command with a wrong setting, or without providers, prints what is wrong and exits with 2", async () => {
  const ended = await run("commands/main.ts", ["plan", "list"], environment(wrong));
  expect(ended).toEqual({ exitCode: 2, stdout: "", stderr: whatIsWrong });
});

test("a process with a wrong setting, or without providers, logs what is wrong and exits with 1", async () => {
  const { exitCode, stdout, stderr } = await run("worker/main.ts", [], environment(wrong));
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: "" });
  expect(JSON.parse(stdout)).toMatchObject({ level: 60, process: "worker", msg: whatIsWrong });
});

test("a migration without DATABASE_URL exits with 1", async () => {
  const { exitCode, stdout, stderr } = await run("shared/database/migrate.ts", [], {});
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toContain("DATABASE_URL: expected a URL that begins with postgres:// or postgresql://");
});

describe("with servers", () => {
  let service: Service;
  beforeAll(async () => {
    service = await Service.start({ apis: 0, workers: 0 });
  });
  afterAll(() => service.stop());

  const own = () => ({ DATABASE_URL: service.processDatabaseUrl, REDIS_URL: service.redisServer.url });

  test.each(["API_PORT", "API_OPS_PORT"])("an API whose %s is in use logs that and exits", async (setting) => {
    const other = createServer();
    const port = await listenOn(other);
    const ended = await run("api/main.ts", [], environment({ ...own(), [setting]: String(port) }));
    other.close();
    expect(ended.exitCode).toBe(1);
    expect(JSON.parse(ended.stdout.trim().split("\n").at(-1) ?? "")).toMatchObject({
      level: 60,
      msg: "the api could not start",
      err: { code: "EADDRINUSE", message: expect.stringContaining(`127.0.0.1:${port}`) },
    });
  });

  test.each([
    { kind: "api", sandbox: [] },
    { kind: "worker", sandbox: ["sandbox"] },
  ] as const)(
    "the owner as login, a Redis without a password, and made-up answers cost the $kind one warning each",
    async ({ kind, sandbox }) => {
      const process = new RunningProcess(
        `${kind}/main.ts`,
        environment({ ...own(), DATABASE_URL: service.databaseUrl }),
      );
      const opsUrl = `http://127.0.0.1:${String((await process.line("ops port open")).port)}`;
      await expect.poll(async () => (await fetch(`${opsUrl}/readyz`)).status).toBe(200);
      await process.stop();
      const warnings = process.lines.filter(({ level }) => level === 40).map(({ msg = "" }) => msg);
      expect(warnings.toSorted()).toEqual([
        expect.stringMatching(/^DATABASE_URL .* MIGRATION_DATABASE_URL: docs\/operating\/datastores\.md$/),
        expect.stringMatching(/^REDIS_URL has no password\. .*docs\/operating\/datastores\.md$/),
        ...sandbox.map((name) => expect.stringMatching(new RegExp(`^SERP_PROVIDERS has ${name}: it makes answers up`))),
      ]);
    },
  );

  test("a worker with a provider whose key is missing names the setting and exits", async () => {
    const ended = await run("worker/main.ts", [], environment({ ...own(), SERP_PROVIDERS: "sandbox,serper" }));
    expect(ended.exitCode).toBe(1);
    expect(ended.stdout + ended.stderr).toContain("SERPER_API_KEY: required by the provider serper");
  });

  test("a worker whose Redis user may not run INFO names the command and exits", async () => {
    await service.redis.call("ACL", "SETUSER", "limited", "on", "nopass", "~*", "&*", "+@all", "-info");
    const REDIS_URL = Object.assign(new URL(service.redisServer.url), { username: "limited", password: "any" }).href;
    const { exitCode, stdout } = await run("worker/main.ts", [], environment({ ...own(), REDIS_URL }));
    expect(exitCode).toBe(1);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line): Record<string, unknown> => JSON.parse(line));
    expect(lines.find(({ level }) => level === 60)).toMatchObject({
      msg: "the worker could not start",
      err: { message: expect.stringMatching(/^NOPERM .*'info'/) },
    });
  });

  test("the first heartbeat of a worker whose machine has a wrong clock has Redis' time", async () => {
    const monitor = await service.redis.monitor();
    const { promise: first, resolve } = Promise.withResolvers<{ atMs: number }>();
    monitor.on("monitor", (_time: string, [command, key, , heartbeat = ""]: string[]) => {
      if (command === "hset" && key === "workers") resolve(JSON.parse(heartbeat));
    });
    const anHourBehind = "const now = Date.now; Date.now = () => now() - 3_600_000";
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(anHourBehind)}`;
    const worker = new RunningProcess("worker/main.ts", environment({ ...own(), NODE_OPTIONS }));
    const { atMs } = await first;
    monitor.disconnect();
    await worker.destroy();
    expect(Math.abs(atMs - Date.now())).toBeLessThan(600_000);
  });

  test("a process that starts before Redis is alive and not ready, logs that it waits, and starts once Redis is there", async () => {
    const { port } = service.redisServer;
    await service.redisServer.stop();
    const worker = new RunningProcess("worker/main.ts", environment(own()));
    await worker.line("still waiting for Redis");
    const opsUrl = `http://127.0.0.1:${String((await worker.line("ops port open")).port)}`;
    expect((await fetch(`${opsUrl}/livez`)).status).toBe(200);
    const readyz = await fetch(`${opsUrl}/readyz`);
    expect([readyz.status, await readyz.json()]).toEqual([
      503,
      { ready: false, missing: ["start", "redis", "redis worker"] },
    ]);
    expect(await (await fetch(`${opsUrl}/metrics`)).text()).toContain('readiness_check_passed{check="redis"} 0');

    await service.restartRedis(port);
    await worker.line("started");
    await expect.poll(async () => (await fetch(`${opsUrl}/readyz`)).status).toBe(200);
    expect(await (await fetch(`${opsUrl}/metrics`)).text()).not.toContain('check="start"');
    expect(await worker.stop()).toBe(0);
    expect(worker.noEntries).toEqual([]);
  });
});
