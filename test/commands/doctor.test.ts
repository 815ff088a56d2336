import { mkdir, readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { eventually } from "../harness/assertions/eventually.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { freePort } from "../../local/ports.ts";
import { startProviderStubs } from "../worker/providers/provider-stubs.ts";

/** `admin doctor`: it says what keeps searches from being served, and what to do about it. */

const report = z.object({
  ok: z.boolean(),
  findings: z.array(
    z.object({
      part: z.string(),
      state: z.string(),
      found: z.string(),
      advice: z.string().nullable(),
      docs: z.string().nullable(),
    }),
  ),
});

const [service, idle] = await Promise.all([Service.start({ apis: 0 }), Service.start({ apis: 0, workers: 0 })]);
afterAll(() => Promise.all([service.stop(), idle.stop()]));

/** @returns what is not ok, the parts that were examined, and the exit code. */
async function examine(settings: Record<string, string> = {}, of = service) {
  const { exitCode, stdout, stderr } = await new Operator(of, settings).try("doctor");
  expect(stderr).toBe("");
  const { ok, findings } = report.parse(JSON.parse(stdout));
  expect(ok).toBe(exitCode === 0);
  const parts = findings.map(({ part }) => part);
  return { exitCode, parts, wrong: findings.filter(({ state }) => state !== "ok") };
}

const sandboxOnly = { part: "providers", state: "warning", found: "sandbox makes answers up" };

test("every page that a finding can refer to exists, with its heading", async () => {
  const read = (name: string) => readFile(new URL(`../../commands/${name}`, import.meta.url), "utf8");
  const sources = await Promise.all(["doctor.ts", "findings.ts"].map(read));
  const pages = [...sources.join("\n").matchAll(/"(docs\/[\w/]+\.md)(?:#([\w-]+))?"/g)];
  expect(pages.length).toBeGreaterThan(8);
  for (const [, path = "", anchor] of pages) {
    const text = await readFile(new URL(`../../${path}`, import.meta.url), "utf8");
    const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
      title.toLowerCase().replaceAll(" ", "-"),
    );
    expect([undefined, ...headings]).toContain(anchor);
  }
});

test("each wrong setting is named with what was expected, without its value", async () => {
  const settings = { API_PORT: "canary", REDIS_URL: "http://canary" };
  const { exitCode, wrong } = await examine(settings);
  expect(exitCode).toBe(1);
  expect(wrong).toMatchObject([
    { part: "settings", state: "error", found: expect.stringMatching(/^REDIS_URL: expected/) },
    { part: "settings", state: "error", found: expect.stringMatching(/^API_PORT: expected/) },
  ]);
  expect(JSON.stringify(wrong)).not.toContain("canary");
});

test("without Postgres and Redis both are named, and searches cannot be served", async () => {
  const [postgres, redis] = [await freePort(), await freePort()];
  const { exitCode, parts, wrong } = await examine({
    DATABASE_URL: `postgres://a:canary@127.0.0.1:${postgres}/b`,
    REDIS_URL: `redis://:canary@127.0.0.1:${redis}`,
  });
  expect(exitCode).toBe(1);
  expect(parts).not.toContain("clocks");
  expect(wrong).toMatchObject([
    { part: "postgres", state: "error", advice: expect.stringContaining("DATABASE_URL") },
    { part: "redis", state: "error", advice: expect.stringContaining("REDIS_URL") },
    sandboxOnly,
  ]);
  expect(JSON.stringify(wrong)).not.toContain("canary");
});

test("a Postgres that refuses writes is an error, though it answers", async () => {
  const address = new URL(service.processDatabaseUrl);
  address.searchParams.set("options", "-c default_transaction_read_only=on");
  const { exitCode, wrong } = await examine({ DATABASE_URL: address.href });
  expect(exitCode).toBe(1);
  const found = expect.stringMatching(/^Postgres .+, which refuses writes$/);
  expect(wrong).toContainEqual(expect.objectContaining({ part: "postgres", state: "error", found }));
});

const noReplica = "refuses writes: NOREPLICAS Not enough good replicas to write.";
test.each([
  ["evicts keys", "maxmemory-policy", "allkeys-lru", "noeviction", "evicts keys (allkeys-lru)"],
  ["refuses writes, though it answers,", "min-replicas-to-write", "1", "0", noReplica],
])("a Redis that %s is an error with its reason", async (_title, setting, bad, usual, found) => {
  await service.redis.config("SET", setting, bad);
  const { exitCode, wrong } = await examine();
  await service.redis.config("SET", setting, usual);
  expect(exitCode).toBe(1);
  expect(wrong).toContainEqual(expect.objectContaining({ part: "redis", state: "error", found }));
});

test("a Redis that is almost full is a warning", async () => {
  const used = Number(/used_memory:(\d+)/.exec(await service.redis.info("memory"))?.[1]);
  await service.redis.config("SET", "maxmemory", String(Math.round(used * 1.1)));
  const { exitCode, wrong } = await examine();
  await service.redis.config("SET", "maxmemory", "0");
  expect(exitCode).toBe(0);
  expect(wrong).toContainEqual(expect.objectContaining({ advice: expect.stringContaining("Raise maxmemory") }));
});

test("a Redis that could not rewrite its append-only file is a warning, because the file grows", async () => {
  const { redis, redisServer } = service;
  const statusOf = async () => /aof_last_bgrewrite_status:(\w+)/.exec(await redis.info("persistence"))?.[1];
  const isRewritten = async () => !/aof_rewrite_(in_progress|scheduled):1/.test(await redis.info("persistence"));
  await redis.config("SET", "appendonly", "yes");
  await eventually(isRewritten);
  const next = join(redisServer.folder, "appendonlydir", "appendonly.aof.2.base.rdb");
  await mkdir(next);
  await redis.bgrewriteaof();
  await eventually(async () => (await statusOf()) === "err");
  const { exitCode, wrong } = await examine();
  await rmdir(next);
  await redis.config("SET", "appendonly", "no");
  expect(exitCode).toBe(0);
  expect(wrong).toContainEqual(
    expect.objectContaining({ part: "redis", state: "warning", found: expect.stringMatching(/^failed to rewrite/) }),
  );
});

test("a Redis that could not write its last snapshot is a warning, because it may refuse every write", async () => {
  const { redis, redisServer } = service;
  const snapshot = join(redisServer.folder, "dump.rdb");
  const endOfSnapshot = async () => {
    await redis.bgsave();
    await eventually(async () => (await redis.info("persistence")).includes("rdb_bgsave_in_progress:0"));
  };
  await mkdir(snapshot);
  await endOfSnapshot();
  const { exitCode, wrong } = await examine();
  await rmdir(snapshot);
  await endOfSnapshot();
  expect(exitCode).toBe(0);
  expect(wrong).toContainEqual(expect.objectContaining({ part: "redis", advice: expect.stringContaining('save ""') }));
});

test("without a worker searches cannot be served", async () => {
  const { exitCode, wrong } = await examine({}, idle);
  expect(exitCode).toBe(1);
  expect(wrong).toContainEqual(expect.objectContaining({ part: "workers", state: "error", found: "no heartbeat" }));
});

// Each leaves its damage to those behind it.
test.each([
  ["revoke all on all functions in schema public from serpmill", "the role serpmill lacks privileges"],
  ["delete from migrations where version = (select max(version) from migrations)", "pending migrations: 1"],
  ["revoke all on migrations from serpmill", "permission denied for table migrations"],
])("after `%s` the doctor sends the operator to the migration", async (statement, found) => {
  await asOwner(idle.databaseUrl, (client) => client.query(statement));
  const advice = expect.stringContaining("npm run migrate");
  const docs = expect.stringMatching(/^docs\/operating\//);
  const { wrong } = await examine({}, idle);
  expect(wrong).toContainEqual({ part: "postgres", state: "error", found, advice, docs });
});

test("a provider that refuses our account is a warning beside another that works, and an error alone", async () => {
  const stubs = await startProviderStubs();
  const settings = { ...stubs.settings, SERPER_API_KEY: "another-key" };
  const found = expect.stringMatching(/^serper rejects our account/);
  const beside = await examine({ ...settings, SERP_PROVIDERS: "serper,sandbox" });
  const alone = await examine({ ...settings, SERP_PROVIDERS: "serper" });
  await stubs.close();
  expect(beside).toMatchObject({ exitCode: 0 });
  expect(beside.wrong).toContainEqual(expect.objectContaining({ part: "providers", state: "warning", found }));
  expect(alone).toMatchObject({ exitCode: 1 });
  expect(alone.wrong).toContainEqual(expect.objectContaining({ part: "providers", state: "error", found }));
});

test("a plan below what its providers take is named with the figures, and a provider without a price as unknown", async () => {
  const settings = { SERP_PROVIDERS: "serper,searxng", SERPER_BASE_URL: "http://127.0.0.1:1" };
  const { stdout } = await new Operator(service, settings).try("doctor");
  const { findings } = report.parse(JSON.parse(stdout));
  const sold =
    "sells a search of depth 100 for 5 mils, but it costs 10 mils at serper; the plan loses money from depth 51 on";
  const advice = expect.stringContaining("--price-per-page or --max-depth");
  const docs = "docs/operating/providers.md#prices-and-margin-by-depth";
  expect(findings.filter(({ part }) => part === "plans")).toEqual([
    { part: "plans", state: "warning", found: `plan free ${sold}`, advice, docs },
    { part: "plans", state: "warning", found: `plan payg ${sold}`, advice, docs },
    { part: "plans", state: "ok", found: "the cost of a search at searxng is unknown", advice: null, docs: null },
  ]);
});

test("a plan that sells searches below what a provider takes is set, with the figures on stderr and in the result", async () => {
  const providers = { SERP_PROVIDERS: "serper,dataforseo,searxng", SERPER_API_KEY: "" };
  const setFor = async (...options: string[]) => {
    const args = ["plan", "set", "margin", ...options, "--limit", "1", "--window", "1", "--concurrency", "1"];
    const { exitCode, stdout, stderr } = await new Operator(service, providers).try(...args);
    return { exitCode, stderr, ...z.looseObject({ belowCost: z.array(z.unknown()) }).parse(JSON.parse(stdout)) };
  };
  const unknown = "The cost of a search at searxng is unknown.\n";
  expect(await setFor("--price", "5")).toMatchObject({
    exitCode: 0,
    belowCost: [
      { provider: "serper", fromDepth: 51, depth: 100, priceMils: 5, costMils: 10 },
      { provider: "dataforseo", fromDepth: 31, depth: 100, priceMils: 5, costMils: 15.5 },
    ],
    unknownCost: ["searxng"],
    stderr:
      "Warning: plan margin sells a search of depth 100 for 5 mils, but it costs 10 mils at serper; the plan loses money from depth 51 on.\n" +
      "Warning: plan margin sells a search of depth 100 for 5 mils, but it costs 15.5 mils at dataforseo; the plan loses money from depth 31 on.\n" +
      unknown,
  });
  const [shallow] = (await setFor("--price", "5", "--max-depth", "35")).belowCost;
  expect(shallow).toMatchObject({ provider: "dataforseo", fromDepth: 31, depth: 35, costMils: 6.5 });
  expect(await setFor("--price-per-page", "2")).toMatchObject({ exitCode: 0, belowCost: [], stderr: unknown });
  expect(await setFor("--price", "0", "--operations", "usage.get")).toMatchObject({ belowCost: [], stderr: "" });
});

test("a plan whose searches in flight can make more calls than may stay unpaid is set, with a warning", async () => {
  const setTo = async (...options: string[]) =>
    (await new Operator(service, { SERP_PROVIDERS: "sandbox" }).try("plan", "set", "wide", ...options)).stderr;
  const terms = ["--price", "5", "--limit", "1", "--window", "1", "--concurrency", "10"];
  expect(await setTo(...terms)).toBe("");
  expect(await setTo("--concurrency", "20")).toBe(
    "Warning: plan wide allows 100 unpaid provider calls an hour, but its 20 searches in flight can make 200 calls. See --unpaid-calls.\n",
  );
  expect(await setTo("--max-depth", "50")).toBe("");
  expect(await setTo("--concurrency", "1000000", "--unpaid-calls", "1000000", "--max-depth", "none")).toBe("");
});
