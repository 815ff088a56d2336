import { Redis } from "ioredis";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../local/ports.ts";
import { processUrlOf } from "../../../local/postgres.ts";
import { startRedis } from "../../../local/redis.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { run } from "../../harness/processes/run.ts";
import { addRedisUsers } from "../../harness/servers/redis-users.ts";
import { freshDatabase } from "../../harness/servers/servers.ts";
import { usualSettings } from "../../harness/processes/supervised-process.ts";

/** A Redis Cluster of one node that has all slots, so that nothing but its mode is wrong. */

const extraArgs = ["--cluster-enabled", "yes", "--cluster-port", String(await freePort())];
const [cluster, database] = await Promise.all([startRedis({ extraArgs }), freshDatabase()]);
const urls = await addRedisUsers(cluster);
const operator = new Redis(cluster.url);
await operator.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
await eventually(async () => (await operator.cluster("INFO")).includes("cluster_state:ok"));
operator.disconnect();
afterAll(() => Promise.all([cluster.stop(), database.drop()]));

const messageIn = (line: string): unknown => line !== "" && JSON.parse(line).msg;

test.each([
  ["worker/main.ts", []],
  ["commands/main.ts", ["ledger", "verify"]],
  ["commands/main.ts", ["search", "raw", "req_01m7xy02p3f9xsnhttx3p2c6sn"]],
] as const)(
  "%s %j refuses a Redis Cluster with one sentence that says what to use, and exits with 1",
  async (program, args) => {
    const REDIS_URL = program.startsWith("worker") ? urls.worker : urls.api;
    const ended = await run(program, args, { ...usualSettings, DATABASE_URL: processUrlOf(database.url), REDIS_URL });
    const isService = !program.startsWith("commands/");
    expect(ended).toMatchObject({ exitCode: 1, [isService ? "stderr" : "stdout"]: "" });
    // The last line need not be the latest: at the end of a process, it is written beside a write that is under way.
    const said = isService ? ended.stdout.split("\n").map(messageIn) : [ended.stderr.trim()];
    const sentence = /^REDIS_URL leads to a Redis Cluster, .*: use one Redis or Valkey instead, .*\.$/;
    expect(said).toContainEqual(expect.stringMatching(sentence));
  },
);

test.each([
  ["worker/main.ts", []],
  ["commands/main.ts", ["ledger", "verify"]],
] as const)(
  "%s %j refuses a database that Redis does not have, and never uses another one instead",
  async (program, args) => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const settings = { DATABASE_URL: processUrlOf(database.url), REDIS_URL: new URL("/99", redis.url).href };
    const ended = await run(program, args, { ...usualSettings, ...settings });
    expect(ended.exitCode).toBe(1);
    expect(ended.stdout + ended.stderr).toContain("REDIS_URL names the database 99, which this Redis does not have.");
  },
);
