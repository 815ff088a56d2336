import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { openContext } from "../../../shared/process/context.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import { openLog } from "../../../shared/log.ts";
import { bodyCharactersMax, readRawAnswers, searchCharactersMax } from "../../../worker/raw-answers/raw-answers.ts";
import { openRawAnswers, type RawAnswerRecorder } from "../../../worker/raw-answers/record-raw-answers.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { engineConfig } from "../../harness/fixtures/queries.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

const log = openLog({ name: "test", level: "silent" });
const minutes = 7;

let redisServer: LocalServer;
beforeEach(async () => {
  redisServer = await freshRedis();
});
afterEach(() => redisServer.stop());

/** What a worker with RAW_ANSWER_MINUTES opens. It closes with the test. */
async function open() {
  const config = engineConfig({ REDIS_URL: redisServer.url, RAW_ANSWER_MINUTES: String(minutes) });
  const context = openContext({ config, name: "worker", databaseSizeMax: 1, log });
  onTestFinished(() => context.shutdown.run(log));
  await eventually(async () => context.redis.status === "ready");
  const rawAnswers = openRawAnswers(context);
  if (!rawAnswers) throw new Error("Raw answers are off.");
  const { values } = await context.metrics.rawAnswers.get();
  const counts = async () => {
    const counted = (await context.metrics.rawAnswers.get()).values;
    return Object.fromEntries(counted.map(({ labels, value }) => [labels.outcome, value]));
  };
  expect(values.map(({ value }) => value)).toEqual([0, 0, 0, 0]);
  return { ...context, rawAnswers, counts };
}

const call = { provider: "serper", outcome: "ok" as const, ms: 12, costMicroUsd: 1_000 };
const answered = (recorder: RawAnswerRecorder, body: string, pageNumber = 1) =>
  recorder.record(call, { pageNumber, answer: { status: 200, headers: { "x-secret": "header" }, body } });

test("by default nothing is opened that could keep an answer", () => {
  const config = engineConfig({ REDIS_URL: redisServer.url });
  const context = openContext({ config, name: "worker", databaseSizeMax: 1, log });
  onTestFinished(() => context.shutdown.run(log));
  expect(config.RAW_ANSWER_MINUTES).toBe(0);
  expect(openRawAnswers(context)).toBeUndefined();
});

test("searches that run at once each keep their own answers, for RAW_ANSWER_MINUTES, and no headers", async () => {
  const { redis, rawAnswers, counts } = await open();
  const ids = Array.from({ length: 30 }, (_, at) => `req_${at}`);
  for (const id of ids) {
    const recorder = rawAnswers.recorderFor(id);
    for (const page of [2, 1]) answered(recorder, `page ${page} of ${id}`, page);
  }
  await rawAnswers.idle();
  expect((await redis.keys("*")).toSorted()).toEqual(ids.map((id) => `raw:${id}`).toSorted());
  for (const id of ids) {
    const { answers = [] } = (await readRawAnswers(redis, id)) ?? {};
    expect(answers.map(({ body }) => body)).toEqual([`page 1 of ${id}`, `page 2 of ${id}`]);
    expect(JSON.stringify(answers)).not.toContain("header");
    const ttlMs = await redis.pttl(`raw:${id}`);
    expect(ttlMs).toBeGreaterThan((minutes - 3) * 60_000);
    expect(ttlMs).toBeLessThanOrEqual(minutes * 60_000);
  }
  expect(await counts()).toEqual({ kept: 60, no_headroom: 0, dropped: 0, failed: 0 });
});

test("a later answer of a search does not prolong the time for which the first ones are kept", async () => {
  const { redis, rawAnswers } = await open();
  const recorder = rawAnswers.recorderFor("req_1");
  answered(recorder, "one");
  await rawAnswers.idle();
  await redis.pexpire("raw:req_1", 60_000);
  answered(recorder, "two");
  await rawAnswers.idle();
  expect(await redis.llen("raw:req_1")).toBe(2);
  expect(await redis.pttl("raw:req_1")).toBeLessThanOrEqual(60_000);
});

test("large bodies are cut, each at its own limit and all of a search at another, and say how long they were", async () => {
  const { redis, rawAnswers } = await open();
  const recorder = rawAnswers.recorderFor("req_1");
  const whole = bodyCharactersMax + 1;
  const pages = [1, 2, 3, 4, 5];
  for (const page of pages) answered(recorder, "x".repeat(whole), page);
  await rawAnswers.idle();
  const { answers = [] } = (await readRawAnswers(redis, "req_1")) ?? {};
  const kept = answers.map(({ body }) => body?.length);
  expect(kept).toEqual(pages.map((page) => (page * bodyCharactersMax <= searchCharactersMax ? bodyCharactersMax : 0)));
  expect(answers.map(({ bodyCharacters }) => bodyCharacters)).toEqual(pages.map(() => whole));
});

test("above 40 % of maxmemory nothing is kept, and this is counted", async () => {
  const { redis, rawAnswers, counts } = await open();
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  await redis.config("SET", "maxmemory", String(used * 2));
  answered(rawAnswers.recorderFor("req_1"), "a body");
  await rawAnswers.idle();
  expect(await redis.dbsize()).toBe(0);
  expect(await counts()).toMatchObject({ kept: 0, no_headroom: 1, failed: 0 });
});

test("when more than the limit waits to be stored, the rest is dropped and counted, and later answers are kept", async () => {
  const { redis, rawAnswers, counts } = await open();
  const recorders = Array.from({ length: 20 }, (_, at) => rawAnswers.recorderFor(`req_${at}`));
  for (const recorder of recorders) answered(recorder, "x".repeat(bodyCharactersMax));
  await rawAnswers.idle();
  const { kept = 0, dropped = 0 } = await counts();
  expect([kept + dropped, await redis.dbsize()]).toEqual([20, kept]);
  expect(dropped).toBeGreaterThan(0);
  answered(rawAnswers.recorderFor("req_later"), "a body");
  await rawAnswers.idle();
  expect(await redis.exists("raw:req_later")).toBe(1);
});

test("without Redis a search goes on at once, and what is lost is counted", async () => {
  const { redis, rawAnswers, counts } = await open();
  await redisServer.stop();
  await eventually(async () => redis.status !== "ready");
  const recorder = rawAnswers.recorderFor("req_1");
  answered(recorder, "a body");
  recorder.recordNoCall({ from: "cache", callsOf: null });
  await rawAnswers.idle();
  expect(await counts()).toEqual({ kept: 0, no_headroom: 0, dropped: 0, failed: 2 });
  redisServer = await freshRedis();
});
