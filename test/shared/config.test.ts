import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Config,
  ConfigError,
  MissingSettings,
  readConfig,
  readDatabaseUrl,
  readEngineConfig,
} from "../../shared/config.ts";
import { RunningProcess } from "../harness/processes/process.ts";
import { run } from "../harness/processes/run.ts";
import { Service } from "../harness/processes/service.ts";
import { readSource } from "../harness/assertions/sources.ts";

const urls = { DATABASE_URL: "postgres://localhost/serpmill", REDIS_URL: "redis://localhost:6379" };

/** What an operator is told about an environment, or nothing where it is taken. */
function refusalOf(environment: Record<string, string>): string | undefined {
  try {
    readConfig(environment);
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

const aPage = "expected a URL that begins with http:// or https://";
const aPort = "expected a whole number from 0 to 65535";
const aPostgres = "expected a URL that begins with postgres:// or postgresql://";
const aRedis = "expected a URL that begins with redis:// or rediss://";
const aProvider = "expected a comma list of: sandbox, serpapi, serper, searxng, dataforseo";

test.each([
  { setting: "DATABASE_URL", value: "mysql://canary:secret@host/db", expected: aPostgres },
  { setting: "DATABASE_URL", value: "canary", expected: aPostgres },
  { setting: "REDIS_URL", value: "http://:canary@host", expected: aRedis },
  { setting: "HOST", value: "canary host", expected: "expected an address or the name of a host" },
  { setting: "API_PORT", value: "65536", expected: aPort },
  { setting: "API_PORT", value: "-70", expected: aPort },
  { setting: "API_OPS_PORT", value: "80.5", expected: aPort },
  { setting: "API_OPS_PORT", value: "0x50", expected: aPort },
  { setting: "WORKER_OPS_PORT", value: " ", expected: aPort },
  { setting: "WORKER_OPS_PORT", value: "canary", expected: aPort },
  { setting: "WORKER_CONCURRENCY", value: "0", expected: "expected a whole number from 1 to 1000" },
  { setting: "WORKER_CONCURRENCY", value: "1001", expected: "expected a whole number from 1 to 1000" },
  { setting: "SEARCH_DEADLINE_MS", value: "499", expected: "expected a whole number from 500 to 120000" },
  { setting: "SEARCH_DEADLINE_MS", value: "120001", expected: "expected a whole number from 500 to 120000" },
  { setting: "SEARCH_DEADLINE_MS", value: "30s", expected: "expected a whole number from 500 to 120000" },
  { setting: "SERP_PROVIDERS", value: "sandbox,canary", expected: aProvider },
  { setting: "SERP_PROVIDERS", value: ",", expected: aProvider },
  {
    setting: "SERPAPI_API_KEY",
    value: "canary of a key with spaces",
    expected: "expected 20 or more letters, digits, - or _",
  },
  { setting: "SERPAPI_BASE_URL", value: "ftp://canary", expected: aPage },
  { setting: "SERPER_API_KEY", value: "canary\nkey", expected: "expected visible ASCII characters without spaces" },
  { setting: "SERPER_BASE_URL", value: "ftp://canary", expected: aPage },
  { setting: "SEARXNG_BASE_URL", value: "canary.example", expected: aPage },
  {
    setting: "DATAFORSEO_LOGIN",
    value: "canary:pass",
    expected: "expected visible ASCII characters without spaces and colons",
  },
  {
    setting: "DATAFORSEO_PASSWORD",
    value: "canary pass",
    expected: "expected visible ASCII characters without spaces",
  },
  { setting: "DATAFORSEO_BASE_URL", value: "api.dataforseo.canary", expected: aPage },
  { setting: "TOPUP_URL", value: "canary", expected: "expected a URL, or a path that begins with /" },
  {
    setting: "PUBLIC_URL",
    value: "canary.example",
    expected: "expected a URL that begins with http:// or https:// and has no path",
  },
  {
    setting: "MCP_ALLOWED_HOSTS",
    value: "good.example, https://canary.example",
    expected: "expected a comma list of host names, without ports",
  },
  {
    setting: "LOG_LEVEL",
    value: "canary",
    expected: "expected one of: fatal, error, warn, info, debug, trace, silent",
  },
])(
  "$setting=$value is refused by name, with what was expected and without the value",
  ({ setting, value, expected }) => {
    expect(refusalOf({ ...urls, [setting]: value })).toBe(
      `These settings are missing or wrong:\n  ${setting}: ${expected}`,
    );
  },
);

test("all wrong settings are told at once, also those that are missing", () => {
  expect(refusalOf({ API_PORT: "x", SERP_PROVIDERS: "a,b" })?.split("\n")).toEqual([
    "These settings are missing or wrong:",
    `  DATABASE_URL: ${aPostgres}`,
    `  REDIS_URL: ${aRedis}`,
    `  API_PORT: ${aPort}`,
    `  SERP_PROVIDERS: ${aProvider}`,
  ]);
});

test("an empty setting counts as absent, and where the data is has no default", () => {
  const names = settingNames().filter((name) => !(name in urls));
  const empty = Object.fromEntries(names.map((name) => [name, ""]));
  expect(readConfig({ ...urls, ...empty })).toEqual(readConfig(urls));
  expect(refusalOf({ ...urls, REDIS_URL: "" })).toContain(`REDIS_URL: ${aRedis}`);
});

test("what was read cannot be changed", () => {
  expect(Object.isFrozen(readConfig(urls))).toBe(true);
});

test("a migration needs to know no more than where the database is", () => {
  const { DATABASE_URL } = urls;
  expect(readDatabaseUrl({ DATABASE_URL, API_PORT: "x" })).toBe(DATABASE_URL);
  expect(() => readDatabaseUrl({})).toThrow(`DATABASE_URL: ${aPostgres}`);
});

test("the engine needs neither Postgres nor Redis, and what is not its own is not looked at", () => {
  const { DATABASE_URL: _, REDIS_URL: __, ...rest } = readConfig({ ...urls, SERPER_API_KEY: "key" });
  const engine = readEngineConfig({ SERPER_API_KEY: "key", API_PORT: "x" });
  expect(rest).toMatchObject(engine);
  expect(engine).toMatchObject({ SERP_PROVIDERS: ["sandbox"], SERPER_API_KEY: "key" });
  expect(() => readEngineConfig({ SERPER_BASE_URL: "x" })).toThrow(ConfigError);
});

test("another default holds where the environment says nothing, and is checked like all else", () => {
  const defaults = { SERPER_BASE_URL: "http://a.example" };
  expect(readEngineConfig({ SERPER_BASE_URL: "" }, defaults)).toMatchObject(defaults);
  const set = { SERPER_BASE_URL: "http://b.example" };
  expect(readEngineConfig(set, defaults)).toMatchObject(set);
  expect(() => readEngineConfig({}, { SERPER_BASE_URL: "x" })).toThrow("SERPER_BASE_URL: expected a URL");
});

test("what a provider lacks is told by name, in words and as a list", () => {
  const error = new MissingSettings("serper", "A", "B");
  expect(error).toMatchObject({ names: ["A", "B"] });
  expect(error.message).toMatch(/:\n {2}A: required by the provider serper\n {2}B: required by the provider serper$/);
});

const settingNames = () =>
  [...readSource("shared/config.ts").matchAll(/^ {2}([A-Z][A-Z_]+): /gm)].map(([, name]) => name ?? "");

describe(".env.example", () => {
  const example = new Map(
    [...readSource(".env.example").matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );

  test("lists exactly the settings that are read", () => {
    expect(settingNames().length).toBeGreaterThan(10);
    expect([...example.keys()].toSorted()).toEqual(settingNames().toSorted());
  });

  test("shows the defaults as its values", () => {
    const read: Config = readConfig(Object.fromEntries(example));
    const places = { DATABASE_URL: example.get("DATABASE_URL"), REDIS_URL: example.get("REDIS_URL") };
    expect(read).toEqual({ ...readConfig(urls), ...places });
  });

  test("says of each setting what may stand there", () => {
    const said = /^(#.*\n)+(?=[A-Z_]+=)/gm;
    const comments = readSource(".env.example").match(said) ?? [];
    expect(comments.filter((comment) => !/default|required/.test(comment))).toEqual([]);
    expect(comments).toHaveLength(example.size);
  });
});

const environment = (settings: Record<string, string>) => ({
  ...urls,
  API_PORT: "0",
  API_OPS_PORT: "0",
  WORKER_OPS_PORT: "0",
  ...settings,
});

test.each(["api/main.ts", "worker/main.ts", "shared/admin.ts"])(
  "%s does not start with a wrong setting: a sentence, and exit code 1",
  async (program) => {
    const args = program.endsWith("admin.ts") ? ["plan", "list"] : [];
    const ended = await run(program, args, environment({ SEARCH_DEADLINE_MS: "canary" }));
    expect(ended).toEqual({
      exitCode: 1,
      stdout: "",
      stderr:
        "These settings are missing or wrong:\n  SEARCH_DEADLINE_MS: expected a whole number from 500 to 120000\n",
    });
  },
);

test("a migration does not start without a database", async () => {
  const { exitCode, stdout, stderr } = await run("shared/database/migrate.ts", [], {});
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toContain(`DATABASE_URL: ${aPostgres}`);
});

describe("with servers", () => {
  let service: Service;
  beforeAll(async () => {
    service = await Service.start({ apis: 0, workers: 0 });
  });
  afterAll(() => service.stop());

  const own = () => ({ DATABASE_URL: service.databaseUrl, REDIS_URL: service.redisServer.url });

  test.each(["API_PORT", "API_OPS_PORT"])("an API whose %s is taken says so and ends", async (setting) => {
    const other = createServer();
    const port = await new Promise<number>((resolve) => {
      other.listen(0, "127.0.0.1", () => {
        const address = other.address();
        resolve(typeof address === "object" && address ? address.port : 0);
      });
    });
    const ended = await run("api/main.ts", [], environment({ ...own(), [setting]: String(port) }));
    other.close();
    expect(ended.exitCode).toBe(1);
    expect(JSON.parse(ended.stdout.trim().split("\n").at(-1) ?? "")).toMatchObject({
      level: 60,
      msg: "the api could not start",
      err: { code: "EADDRINUSE", message: expect.stringContaining(`127.0.0.1:${port}`) },
    });
  });

  test("a worker does not start with a provider whose key is missing, and names the setting", async () => {
    const ended = await run("worker/main.ts", [], environment({ ...own(), SERP_PROVIDERS: "sandbox,serper" }));
    expect(ended.exitCode).toBe(1);
    expect(ended.stdout + ended.stderr).toContain("SERPER_API_KEY: required by the provider serper");
  });

  test("a process that starts before Redis waits for it and says so", async () => {
    const { port } = service.redisServer;
    await service.redisServer.stop();
    const worker = new RunningProcess("worker/main.ts", environment(own()));
    await worker.line("still waiting for Redis");
    await service.restartRedis(port);
    await worker.line("ops port open");
    expect(await worker.stop()).toBe(0);
  });
});
