import { afterAll, beforeEach, expect, test } from "vitest";
import { publishIdentityChange } from "../../shared/organizations/organizations.ts";
import { revokeToken } from "../../api/tokens/tokens.ts";
import type { RunningProcess } from "../harness/processes/process.ts";
import { Service } from "../harness/processes/service.ts";
import { startProxy } from "../harness/servers/proxy.ts";

/**
 * The host of Redis is replaced without a word: connections that are open stay open and carry nothing any more, as after a
 * loss of power or network. Only new connections reach Redis.
 */

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
const proxy = await startProxy(service.redisServer.url, afterAll);
const worker = await service.startWorker({ REDIS_URL: proxy.url });
const api = await service.startApi({ REDIS_URL: proxy.url });
const organization = await service.organization({ creditMils: 1_000 });
const search = (keyword: string) => service.search(organization.token, { keyword });
await service.until(async () => (await search("warm")).status === 200);
beforeEach(() => service.until(async () => (await isReady(api)) && (await isReady(worker))));

const isReady = async ({ opsUrl }: { opsUrl: string }) => (await fetch(`${opsUrl}/readyz`)).ok;

/** How often a process has noticed that Redis is silent on this connection. */
const noticed = ({ lines }: RunningProcess, connection: string) =>
  lines.filter(
    ({ msg, err }) =>
      msg === `error on the Redis connection ${connection}` && /Socket timeout/.test(JSON.stringify(err)),
  ).length;

test("every connection notices it, readiness tells, and searches are answered again", async () => {
  proxy.replaceHost();
  await Promise.all([
    ...[api, worker].map((process) => service.until(async () => !(await isReady(process)))),
    service.until(async () => (await search("again")).status === 200),
  ]);
  for (const process of [api, worker]) await service.until(() => isReady(process));
  for (const connection of ["api", "api-inbox", "queue", "identity"])
    await service.until(async () => noticed(api, connection) > 0);
  await service.until(async () => noticed(worker, "worker") > 0);
  expect([api.hasEnded, worker.hasEnded]).toEqual([false, false]);
});

test.each(["serpmill-worker-queue", "serpmill-worker-takes", "serpmill-api-inbox"])(
  "a search that is enqueued while only the connection %s is silent is answered",
  async (connection) => {
    proxy.replaceHost(connection);
    expect((await search(`without ${connection}`)).status).toBe(200);
  },
);

test("an API whose inbox carries nothing any more is unready until it reads again", async () => {
  proxy.replaceHost("serpmill-api-inbox");
  await service.until(async () => (await (await fetch(`${api.opsUrl}/readyz`)).text()).includes('"redis"'));
  await service.until(() => isReady(api));
  expect((await search("read again")).status).toBe(200);
});

test("a revocation takes effect within two seconds while only the subscriber is silent, which subscribes again", async () => {
  const subscribers = async () => {
    const list = String(await service.redis.call("CLIENT", "LIST", "TYPE", "PUBSUB"));
    return [...list.matchAll(/^id=\d+/gm)].map(([id]) => id);
  };
  const before = await subscribers();
  const revoked = await service.organization({ creditMils: 0 });
  expect((await service.usage(revoked.token)).status).toBe(200);
  proxy.replaceHost("serpmill-identity");
  await revokeToken(service.database, revoked.tokenId);
  await publishIdentityChange(service.redis);
  await service.until(async () => (await service.usage(revoked.token)).status === 401, 2_000);
  // Redis still lists the connection that is gone.
  await service.until(async () => (await subscribers()).some((id) => !before.includes(id)));
});
