import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type Config,
  ConfigError,
  MissingSettings,
  providerNames,
  readConfig,
  readMigrationConfig,
  readEngineConfig,
} from "../../shared/config.ts";
import { nodeSentence, refuseOldNode } from "../../shared/config/start-refused.ts";
import { hostsOf, readRedisAddress } from "../../shared/config/redis-address.ts";
import { settingNames } from "../harness/assertions/declared.ts";
import { readSource } from "../harness/assertions/sources.ts";

const required = {
  DATABASE_URL: "postgres://localhost/serpmill",
  REDIS_URL: "redis://localhost:6379",
  SERP_PROVIDERS: "sandbox",
};

/** The message for an environment that is refused; undefined for one that is accepted. */
function refusalOf(environment: Record<string, string>): string | undefined {
  try {
    readConfig(environment);
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

const anOrigin = "expected a URL that begins with http:// or https:// and has no path";
const aSafeOrigin = "expected a URL that begins with https:// and has no path";
const anAmount = "expected a whole number from 1 to 10000";
const aPage = "expected a URL that begins with http:// or https://";
const aCollector = "expected a URL that begins with http:// or https://, without a login, a query or a fragment";
const someHeaders = "expected a comma list of name=value, with values percent-encoded";
const aSampler =
  "expected one of: traceidratio, parentbased_traceidratio, always_on, parentbased_always_on, always_off, parentbased_always_off";
const aPort = "expected a whole number from 0 to 65535";
const aPostgres = "expected a URL that begins with postgres:// or postgresql://";
const someFiles = "expected that this process can read the files in sslrootcert, sslcert, sslkey";
const aRedis =
  "expected a URL that begins with redis:// or rediss:// and has no path but the number of a database, or redis+sentinel://user:password@host:26379,host:26379/name (rediss+sentinel:// for TLS)";
const doors = "searxng, tavily, openwebui, perplexity, firecrawl, serper";
const aProvider = `expected a comma list of: ${providerNames.filter((name) => name !== "sandbox").join(", ")}; or sandbox, which makes answers up`;

/** Settings with what a refusal says that it expected, and values that are refused. */
const refused: [setting: string, expected: string, ...values: string[]][] = [
  [
    "DATABASE_URL",
    someFiles,
    "postgres://host/db?sslmode=verify-full&sslrootcert=/canary/ca.pem",
    "postgres://host/db?sslkey=/",
  ],
  ["DATABASE_URL", aPostgres, "mysql://canary:secret@host/db", "canary", "postgres:canary"],
  [
    "REDIS_URL",
    aRedis,
    "http://:canary@host",
    "redis://:canary@host/serpmill",
    "redis+sentinel://:canary@host:26379,host",
    "redis+sentinel://:canary@host:70000/name",
    "redis+sentinel://:canary@one,,two/name",
    "rediss+sentinel://:100%canary@host/name",
  ],
  ["HOST", "expected an address or the name of a host", "canary host"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", aCollector, "collector:4317", "https://user:canary@collector"],
  ["OTEL_EXPORTER_OTLP_HEADERS", someHeaders, "canary"],
  ["OTEL_TRACES_SAMPLER", aSampler, "canary"],
  ["OTEL_TRACES_SAMPLER_ARG", "expected a number from 0 to 1", "1.5"],
  ["OPERATOR_NAME", "expected 1 to 100 printable ASCII characters", "  "],
  ["API_PORT", aPort, "65536", "-70"],
  ["API_OPS_PORT", aPort, "80.5", "0x50"],
  ["WORKER_OPS_PORT", aPort, " ", "canary"],
  ["WORKER_CONCURRENCY", "expected a whole number from 1 to 1000", "0", "1001"],
  ["SEARCH_DEADLINE_MS", "expected a whole number from 500 to 120000", "499", "120001", "30s"],
  ["RAW_ANSWER_MINUTES", "expected a whole number from 0 to 60", "61"],
  ["SERP_PROVIDERS", aProvider, "sandbox,canary", ",", ""],
  ["SERP_PROVIDERS", "expected each only once", "serper,searxng, serper"],
  ["SERPAPI_API_KEY", "expected 20 or more letters, digits, - or _", "canary of a key with spaces"],
  ["SERPAPI_BASE_URL", aPage, "ftp://canary"],
  ["SERPER_API_KEY", "expected visible ASCII characters without spaces", "canary\nkey"],
  ["SERPER_BASE_URL", aPage, "ftp://canary"],
  ["SEARXNG_BASE_URL", aPage, "canary.example"],
  ["DATAFORSEO_LOGIN", "expected visible ASCII characters without spaces and colons", "canary:pass"],
  ["DATAFORSEO_PASSWORD", "expected visible ASCII characters without spaces", "canary pass"],
  ["DATAFORSEO_BASE_URL", aPage, "api.dataforseo.canary"],
  ["DATAFORSEO_AI_OVERVIEW", "expected on or off", "canary"],
  ["DATAFORSEO_QUESTION_CLICKS", "expected a whole number from 0 to 4", "5"],
  ["DATAFORSEO_UNGROUP_RESULTS", "expected on or off", "canary"],
  ["SERPAPI_AI_OVERVIEW", "expected on or off", "canary"],
  ["SERPAPI_CACHE", "expected on or off", "canary"],
  ["SEARXNG_ENGINES", "expected a comma list of: google, google cse", "canary"],
  ["SEARCHAPI_API_KEY", "expected visible ASCII characters without spaces", "canary key"],
  ["SEARCHAPI_BASE_URL", aPage, "ftp://canary"],
  ["SEARCHAPI_AI_OVERVIEW", "expected on or off", "canary"],
  ["TOPUP_URL", "expected a URL, or a path that begins with /", "canary"],
  [
    "PUBLIC_URL",
    anOrigin,
    "canary.example",
    "ftp://canary.example",
    "https://canary.example/path",
    "https://canary:secret@host",
  ],
  ["STRIPE_BASE_URL", anOrigin, "https://canary.example/v1"],
  ["STRIPE_CHECKOUT_ORIGIN", aSafeOrigin, "https://canary.example/pay", "http://canary.example", "canary.example"],
  ["COMPAT_DOORS", `expected a comma list of: ${doors}`, "searxng,canary"],
  [
    "COMPAT_HOSTS",
    `expected a comma list of door=host name, without a port, with the doors ${doors}`,
    "canary.example",
  ],
  ["COMPAT_HOSTS", "expected only doors that COMPAT_DOORS names", "tavily=canary.example"],
  [
    "COMPAT_HOSTS",
    "expected each host only once\n  COMPAT_HOSTS: expected only doors that COMPAT_DOORS names",
    "tavily=canary.example,searxng=canary.example",
  ],
  [
    "COMPAT_PATIENCE_MS",
    `expected a comma list of door=milliseconds from 100 to 999999, with the doors ${doors}`,
    "searxng=canary",
  ],
  ["COMPAT_PATIENCE_MS", "expected each door only once", "searxng=900,searxng=9000"],
  ["TOPUP_AMOUNTS_USD", anAmount, "10,,25", "10000,10001", "7.50"],
  ["TOPUP_AMOUNTS_USD", "expected each only once", "10,25,10"],
  ["MCP_ALLOWED_HOSTS", "expected a comma list of host names, without ports", "good.example, https://canary.example"],
  ["LOG_LEVEL", "expected one of: fatal, error, warn, info, debug, trace, silent", "canary"],
];

test.each(refused)("a wrong %s is refused by name, without the value: %s", (setting, expected, ...values) => {
  for (const value of values)
    expect(refusalOf({ ...required, [setting]: value })).toBe(
      `These settings are missing or wrong:\n  ${setting}: ${expected}`,
    );
});

test("a refusal names all wrong settings at once, and all that are missing", () => {
  expect(refusalOf({ API_PORT: "x", SERP_PROVIDERS: "a,b" })?.split("\n")).toEqual([
    "These settings are missing or wrong:",
    `  DATABASE_URL: ${aPostgres}`,
    `  REDIS_URL: ${aRedis}`,
    `  API_PORT: ${aPort}`,
    `  SERP_PROVIDERS: ${aProvider}`,
  ]);
});

test("an empty setting counts as absent, and neither the databases nor the providers have a default", () => {
  const names = settingNames().filter((name) => !(name in required));
  const empty = Object.fromEntries(names.map((name) => [name, ""]));
  expect(readConfig({ ...required, ...empty })).toEqual(readConfig(required));
  expect(refusalOf({ ...required, REDIS_URL: "" })).toContain(`REDIS_URL: ${aRedis}`);
});

test("blanks and line breaks around the address of a store or a provider do not count", () => {
  const addresses = {
    DATABASE_URL: "postgres://localhost/serpmill",
    REDIS_URL: "redis://localhost:6379",
    SERPER_BASE_URL: "https://serper.example",
  };
  const blank = Object.fromEntries(Object.entries(addresses).map(([name, address]) => [name, ` ${address} \n`]));
  expect(readConfig({ ...required, ...blank })).toMatchObject(addresses);
});

test("settings cannot be changed once they are read", () => {
  expect(Object.isFrozen(readConfig(required))).toBe(true);
});

const publicUrl = { PUBLIC_URL: "https://serp.example/" };
const stripe = { STRIPE_SECRET_KEY: "sk_test_canary12", STRIPE_WEBHOOK_SECRET: "whsec_canary12" };

test.each([
  {
    given: { STRIPE_SECRET_KEY: stripe.STRIPE_SECRET_KEY },
    missing: [
      "STRIPE_WEBHOOK_SECRET: required together with STRIPE_SECRET_KEY",
      "PUBLIC_URL: required together with STRIPE_SECRET_KEY",
    ],
  },
  {
    given: { STRIPE_WEBHOOK_SECRET: stripe.STRIPE_WEBHOOK_SECRET },
    missing: ["STRIPE_SECRET_KEY: required together with STRIPE_WEBHOOK_SECRET"],
  },
  { given: stripe, missing: ["PUBLIC_URL: required together with STRIPE_SECRET_KEY"] },
  {
    given: { ...publicUrl, STRIPE_SECRET_KEY: "whsec_canary12", STRIPE_WEBHOOK_SECRET: "sk_test_canary12" },
    missing: [
      "STRIPE_SECRET_KEY: expected letters, digits, - or _ that begin with sk_ or rk_",
      "STRIPE_WEBHOOK_SECRET: expected letters, digits, - or _ that begin with whsec_",
    ],
  },
])("incomplete Stripe settings stop the start: $missing.0", ({ given, missing }) => {
  expect(
    refusalOf({ ...required, ...given })
      ?.split("\n  ")
      .slice(1),
  ).toEqual(missing);
  expect(refusalOf({ ...required, ...publicUrl, ...stripe })).toBeUndefined();
});

test("a user of the Sentinels needs a password", () => {
  expect(refusalOf({ ...required, SENTINEL_USERNAME: "serpmill" })).toContain(
    "SENTINEL_PASSWORD: required together with SENTINEL_USERNAME",
  );
});

test.each([
  {
    url: "redis+sentinel://api:a%40b@one,[::1]:1/main-1",
    hosts: "one:26379, [::1]:1",
    read: { username: "api", password: "a@b", primaryName: "main-1", isEncrypted: false },
  },
  {
    url: "rediss+sentinel://one.example:26380/main",
    hosts: "one.example:26380",
    read: { username: undefined, password: undefined, primaryName: "main", isEncrypted: true },
  },
  {
    url: "rediss://:pass@one",
    hosts: "one:6379",
    read: { password: "pass", primaryName: undefined, isEncrypted: true },
  },
])("REDIS_URL=$url leads to $hosts", ({ url, hosts, read }) => {
  expect(readConfig({ ...required, REDIS_URL: url }).REDIS_URL).toBe(url);
  expect(readRedisAddress(url)).toMatchObject(read);
  expect(hostsOf(url)).toBe(hosts);
});

test("a TOPUP_URL that is a path is completed with PUBLIC_URL", () => {
  const read = (settings: Record<string, string>) => readConfig({ ...required, ...settings });
  expect(read({}).TOPUP_URL).toBe("/billing");
  expect(read(publicUrl)).toMatchObject({
    PUBLIC_URL: "https://serp.example",
    TOPUP_URL: "https://serp.example/billing",
  });
  expect(read({ ...publicUrl, TOPUP_URL: "https://pay.example" }).TOPUP_URL).toBe("https://pay.example");
});

test("a migration needs no setting but DATABASE_URL", () => {
  const { DATABASE_URL } = required;
  expect(readMigrationConfig({ DATABASE_URL, API_PORT: "x" })).toEqual({
    ownerUrl: DATABASE_URL,
    processUrl: DATABASE_URL,
  });
  const MIGRATION_DATABASE_URL = "postgres://owner@localhost/serpmill";
  expect(readMigrationConfig({ DATABASE_URL, MIGRATION_DATABASE_URL }).ownerUrl).toBe(MIGRATION_DATABASE_URL);
  expect(() => readMigrationConfig({})).toThrow(`DATABASE_URL: ${aPostgres}`);
});

test("only a migration needs the files that the address of the owner names", () => {
  const owner = { ...required, MIGRATION_DATABASE_URL: "postgres://owner@localhost/serpmill?sslkey=/canary" };
  expect(() => readMigrationConfig(owner)).toThrow(`MIGRATION_DATABASE_URL: ${someFiles}`);
  expect(readConfig(owner).MIGRATION_DATABASE_URL).toBe(owner.MIGRATION_DATABASE_URL);
});

test("the engine's settings need neither Postgres nor Redis, and other settings are not checked", () => {
  const { DATABASE_URL: _, REDIS_URL: __, ...rest } = readConfig({ ...required, SERPER_API_KEY: "key" });
  const engine = readEngineConfig({ SERP_PROVIDERS: "sandbox", SERPER_API_KEY: "key", API_PORT: "x" });
  expect(rest).toMatchObject(engine);
  expect(engine).toMatchObject({ SERP_PROVIDERS: ["sandbox"], SERPER_API_KEY: "key" });
  expect(() => readEngineConfig({ SERPER_BASE_URL: "x" })).toThrow(ConfigError);
  const behindPath = readEngineConfig({
    SERP_PROVIDERS: "serper",
    SERPER_BASE_URL: " https://proxy.example/serper// ",
  });
  expect(behindPath.SERPER_BASE_URL).toBe("https://proxy.example/serper");
});

test("a given default applies to a setting that is absent, and is checked like any value", () => {
  const defaults = { SERPER_BASE_URL: "http://a.example" };
  expect(readConfig({ ...required, SERPER_BASE_URL: "" }, defaults)).toMatchObject(defaults);
  const set = { SERPER_BASE_URL: "http://b.example" };
  expect(readConfig({ ...required, ...set }, defaults)).toMatchObject(set);
  expect(() => readConfig(required, { SERPER_BASE_URL: "x" })).toThrow("SERPER_BASE_URL: expected a URL");
});

test("settings that a provider lacks are named in the message and in a list", () => {
  const error = new MissingSettings("serper", "A", "B");
  expect(error).toMatchObject({ names: ["A", "B"] });
  expect(error.message).toMatch(/:\n {2}A: required by the provider serper\n {2}B: required by the provider serper$/);
});

test("a door whose patience is not set keeps its default, beside one whose patience is", () => {
  const { COMPAT_PATIENCE_MS } = readConfig({ ...required, COMPAT_PATIENCE_MS: "searxng=9000, perplexity=20000" });
  expect(COMPAT_PATIENCE_MS).toEqual({ searxng: 9_000, tavily: 14_000, serper: 9_000, perplexity: 20_000 });
});

describe(".env.example", () => {
  const example = new Map(
    [...readSource(".env.example").matchAll(/^([A-Z0-9_]+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );

  test("shows the defaults as its values, and leaves the choice of the providers to the operator", () => {
    const { SERP_PROVIDERS } = required;
    expect(example.get("SERP_PROVIDERS")).toBe("");
    const read: Config = readConfig({ ...Object.fromEntries(example), SERP_PROVIDERS });
    const places = { DATABASE_URL: example.get("DATABASE_URL"), REDIS_URL: example.get("REDIS_URL") };
    expect(read).toEqual({ ...readConfig(required), ...places });
  });

  test("says of each setting which values it takes", () => {
    const said = /^(#.*\n)+(?=[A-Z_]+=)/gm;
    const comments = readSource(".env.example").match(said) ?? [];
    expect(comments.filter((comment) => !/default|required/.test(comment))).toEqual([]);
    expect(comments).toHaveLength(example.size);
  });
});

test("README, documentation and the refusal of another Node say the same: which Node installs, and which one runs", () => {
  const { engines, devDependencies } = z
    .object({ engines: z.object({ node: z.string() }), devDependencies: z.object({ node: z.string() }) })
    .parse(JSON.parse(readSource("package.json")));
  expect(nodeSentence).toContain(`Node ${engines.node.replace(">=", "")} or newer`);
  expect(nodeSentence).toContain(`runs on Node ${devDependencies.node.split(".")[0]},`);
  for (const path of ["README.md", "docs/operating/deploying.md"])
    expect(readSource(path).replaceAll("\n", " ")).toContain(nodeSentence);
  expect(() => refuseOldNode("22.18.0")).toThrow(`This is Node 22.18.0. ${nodeSentence}`);
  expect(() => refuseOldNode("24.0.0")).not.toThrow();
});
