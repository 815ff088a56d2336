import { expect, test } from "vitest";
import { Service } from "../harness/processes/service.ts";

/** A process that no longer does its part, although Redis answers it: here because Redis takes the commands of that part from it. */

const password = "watchdog";

/** A service and the URL of a Redis user of its own, whose commands can be taken away. */
async function withRedisUser(
  use: (service: Service, url: string, deny: (...commands: string[]) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  const service = await Service.start({ apis: 0, workers: 0 });
  const user = (...rules: string[]) => service.redis.acl("SETUSER", "stuck", ...rules);
  try {
    await user("on", `>${password}`, "~*", "&*", "+@all");
    const url = new URL(service.redisServer.url);
    Object.assign(url, { username: "stuck", password });
    await use(service, url.href, (...commands) => user(...commands.map((command) => `-${command}`)));
    await service.rest();
    expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  } finally {
    await service.stop();
  }
}

const fatal = (problem: string) => `${problem}: this process ends, so that its supervisor starts it anew`;

test.concurrent("a worker that leaves searches waiting although it has free slots ends with code 1, and another answers them", () =>
  withRedisUser(async (service, url, deny) => {
    const worker = await service.startWorker({ REDIS_URL: url });
    await service.startApi();
    const { token } = await service.organization({ creditMils: 100 });
    await service.until(async () => (await service.search(token, { keyword: "first" })).status === 200);
    await deny("eval", "evalsha");
    const search = service.search(token, { keyword: "left waiting" });
    await worker.line(fatal("searches wait, and this worker has free slots and has taken none for 10 s"));
    await service.startWorker();
    expect(await search).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
    await service.until(async () => worker.hasEnded);
    expect(worker.child.exitCode).toBe(1);
  }));

test.concurrent("an API that leaves replies unread ends with code 1, and its caller's search costs nothing", () =>
  withRedisUser(async (service, url, deny) => {
    await service.startWorker();
    const api = await service.startApi({ REDIS_URL: url });
    await service.startApi();
    const { token } = await service.organization({ creditMils: 100 });
    await service.until(async () => (await service.search(token, { keyword: "first" })).status === 200);
    await deny("xread");
    await api.line("reading the reply inbox failed");
    const search = service.search(token, { keyword: "unread" }).catch(() => undefined);
    await api.line(fatal("workers have sent replies, and this API has read none for 10 s"));
    await service.until(async () => api.hasEnded);
    expect(api.child.exitCode).toBe(1);
    expect((await search)?.status).not.toBe(200);
    await service.age();
    await service.until(async () => (await service.usage(token, 1)).body.creditBalanceMils === 95);
  }));
