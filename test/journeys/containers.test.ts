import { getContainerRuntimeClient } from "testcontainers";
import { expect, test } from "vitest";
import { containedPostgres, containedRedis } from "../harness/servers/containers.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { Service } from "../harness/processes/service.ts";

/** Both servers in containers, or why there are none. */
async function containers() {
  const client = await getContainerRuntimeClient().catch(() => undefined);
  if (!client) return "Docker does not answer here";
  const opened = await Promise.allSettled([containedPostgres(), containedRedis()]);
  const [postgres, redis] = opened.map((one) => (one.status === "fulfilled" ? one.value : undefined));
  if (postgres && redis) return { postgres, redis };
  await Promise.all([postgres?.stop(), redis?.stop()]);
  return "Docker answers, but its images cannot be had here";
}

test("a whole search runs on Postgres and Redis from their public images", async (context) => {
  const opened = await containers();
  if (typeof opened === "string") {
    process.stdout.write(`\nnot run: a whole search on containers, because ${opened}\n`);
    context.skip(opened);
    return;
  }
  const { postgres, redis } = opened;
  const database = { ...(await freshDatabaseIn(postgres.url)), drop: postgres.stop };
  const service = await Service.start({ servers: { database, redis } });
  try {
    const { token } = await service.organization({ creditMils: 100 });
    expect(await service.search(token, { keyword: "tea" })).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
    await service.rest();
    expect((await service.usage(token)).body.creditBalanceMils).toBe(95);
    expect(await service.verify()).toMatchObject({ ok: true });
  } finally {
    await service.stop();
  }
});
