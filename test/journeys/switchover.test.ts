import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { startRedis } from "../../local/redis.ts";
import { Service } from "../harness/processes/service.ts";
import { startProxy } from "../harness/servers/proxy.ts";

/** A primary and its replica change places behind one address, as an operator or a failover does it. */

// As long as a search may take. Without the replies that an API reads a search takes all of it.
const answerMsMax = 5_000;

const service = await Service.start({ apis: 0, workers: 0 });
const servers = [service.redisServer, await startRedis()] as const;
const operators = [service.redis, new Redis(servers[1].url)] as const;
await operators[1].replicaof("127.0.0.1", servers[0].port);
const address = await startProxy(servers[0].url);
const worker = await service.startWorker({ REDIS_URL: address.url });
const api = await service.startApi({ REDIS_URL: address.url });
const { token } = await service.organization({ creditMils: 10_000 });
const search = (keyword: string) => service.search(token, { keyword });
await service.until(async () => (await search("warm")).status === 200);
afterAll(async () => {
  await address.close();
  operators[1].disconnect();
  await servers[1].stop();
  await service.stop();
});

const isReady = async ({ opsUrl }: { opsUrl: string }) => (await fetch(`${opsUrl}/readyz`)).ok;

async function switchOver(from: 0 | 1, to: 0 | 1): Promise<void> {
  await service.until(async () => /master_link_status:up/.test(await operators[to].info("replication")));
  await operators[to].replicaof("no", "one");
  address.lead(servers[to].url);
  await operators[from].replicaof("127.0.0.1", servers[to].port);
}

const connectionsAt = async (at: 0 | 1) => {
  const list = String(await operators[at].call("CLIENT", "LIST"));
  return [...list.matchAll(/name=(serpmill-\S+)/g)].map(([, name]) => name);
};

test("after a switchover and after the way back no process is at the old primary, and searches are answered at once", async () => {
  for (const [from, to] of [
    [0, 1],
    [1, 0],
  ] as const) {
    await switchOver(from, to);
    await service.until(async () => (await search(`first at ${to}`)).status === 200);
    await service.until(async () => (await connectionsAt(from)).length === 0);
    for (const process of [api, worker]) await service.until(() => isReady(process));
    const startedAtMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => search(`at ${to}: ${n}`)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(performance.now() - startedAtMs).toBeLessThan(answerMsMax);
    expect([api.hasEnded, worker.hasEnded]).toEqual([false, false]);
  }
});

test("an API whose inbox carries nothing any more is unready until it reads again", async () => {
  address.replaceHost("serpmill-api-inbox");
  await service.until(async () => (await (await fetch(`${api.opsUrl}/readyz`)).text()).includes('"redis"'));
  await service.until(() => isReady(api));
  expect((await search("read again")).status).toBe(200);
});
