import { afterAll, expect, test } from "vitest";
import { Service } from "../harness/processes/service.ts";

/** A process that no longer does its part, although Redis answers it: here because Redis takes the commands of that part from it. */

const service = await Service.start({ workers: 0, end: afterAll });
afterAll(async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});

/** The URL of a Redis user of its own, from whom commands can be taken away. */
async function redisUser(name: string) {
  const set = (...rules: string[]) => service.redis.acl("SETUSER", name, ...rules);
  await set("on", ">watchdog", "~*", "&*", "+@all");
  const { href } = Object.assign(new URL(service.redisServer.url), { username: name, password: "watchdog" });
  return { url: href, deny: (...commands: string[]) => set(...commands.map((command) => `-${command}`)) };
}

const fatal = (problem: string) => `${problem}: this process ends, so that its supervisor starts it anew`;

test("a worker that leaves searches waiting although it has free slots ends with code 1, and another answers them", async () => {
  const { url, deny } = await redisUser("worker");
  const worker = await service.startWorker({ REDIS_URL: url });
  const { token } = await service.organization({ creditMils: 100 });
  await service.until(async () => (await service.search(token, { keyword: "first" })).status === 200);
  await deny("eval", "evalsha");
  const search = service.search(token, { keyword: "left waiting" });
  await worker.line(fatal("searches wait, and this worker has free slots and has taken none for 10 s"));
  await service.startWorker();
  expect(await search).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
  await service.until(async () => worker.hasEnded);
  expect(worker.child.exitCode).toBe(1);
});

test("an API that leaves replies unread ends with code 1, and its caller's search costs nothing", async () => {
  const { url, deny } = await redisUser("api");
  const api = await service.startApi({ REDIS_URL: url });
  const { token } = await service.organization({ creditMils: 100 });
  await service.until(async () => (await service.search(token, { keyword: "first" }, { api: 1 })).status === 200);
  await deny("xread");
  await api.line("reading the reply inbox failed");
  const search = service.search(token, { keyword: "unread" }, { api: 1 }).catch(() => undefined);
  await api.line(fatal("workers have sent replies, and this API has read none for 10 s"));
  await service.until(async () => api.hasEnded);
  expect(api.child.exitCode).toBe(1);
  expect((await search)?.status).not.toBe(200);
  await service.age();
  await service.until(async () => (await service.usage(token)).body.creditBalanceMils === 95);
});
