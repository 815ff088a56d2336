import { afterAll, expect, test } from "vitest";
import { newId } from "../../shared/ids.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { startRedisPair } from "../harness/servers/redis-pair.ts";
import { startSentinels } from "../harness/servers/sentinels.ts";

/** The whole service behind Sentinels, each process with its users of deploy/redis. */

const pair = await startRedisPair();
const sentinels = await startSentinels(pair.servers[0]);
const service = await Service.start({ apis: 0, workers: 0 });
const worker = await service.startWorker(sentinels.settings("worker"));
const api = await service.startApi(sentinels.settings("api"));
const { token } = await service.organization({ creditMils: 10_000 });
const search = (keyword: string) => service.search(token, { keyword });
await service.until(async () => (await search("warm")).status === 200);
afterAll(async () => {
  await service.stop();
  await sentinels.close();
  await pair.close();
});

test("after a switchover by the Sentinels no process is at the old primary, and searches go on", async () => {
  const [old, next] = pair.servers;
  await sentinels.switchOver();
  await service.until(async () => (await pair.connectionsAt(next)).includes("serpmill-api-inbox"));
  await service.until(async () => (await pair.connectionsAt(old)).length === 0);
  await service.until(async () => (await search("first at the new one")).status === 200);
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => search(`at the new one: ${n}`)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  expect([api.hasEnded, worker.hasEnded]).toEqual([false, false]);
  expect([await pair.refusals(), await sentinels.refusals()]).toEqual([[], []]);
});

test("the operator's commands find Redis through the Sentinels, and name what is wrong without a password", async () => {
  const operator = new Operator(service, sentinels.settings("api"));
  expect(await operator.run("ledger", "verify")).toMatchObject({ ok: true, redisChecked: true });
  const refused = new Operator(service, { ...sentinels.settings("api"), SENTINEL_PASSWORD: "canary" });
  const { exitCode, stderr } = await refused.try("search", "raw", newId("req"));
  expect({ exitCode, stderr }).toEqual({
    exitCode: 3,
    stderr: expect.stringMatching(
      /^Redis at 127\.0\.0\.1:\d+, .* is unreachable: the Sentinel at .*WRONGPASS.*SENTINEL_PASSWORD/,
    ),
  });
  expect(stderr).not.toMatch(/canary|of-the-api/);
});
