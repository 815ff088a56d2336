import { afterAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { migrate } from "../../shared/database/migrate.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { startProxy } from "../harness/servers/proxy.ts";

/** Two workers, whose paths to Postgres break. */

const service = await Service.start({ apis: 1, workers: 0 });
const paths = await Promise.all([0, 1].map(() => startProxy(service.databaseUrl)));
for (const { url } of paths) await service.startWorker({ DATABASE_URL: url });
const { token } = await service.organization({ creditMils: 1_000 });
afterAll(async () => {
  for (const path of paths) path.mend();
  await service.stop();
  await Promise.all(paths.map((path) => path.close()));
});

const { redis } = service;
const leader = () => redis.get("maintenance");
const reporting = async () => (await redis.hkeys("workers")).toSorted();
const heartbeats = async () => {
  const texts = await redis.hvals("workers");
  return texts.map((text) => z.object({ reachesPostgres: z.boolean(), atMs: z.number() }).parse(JSON.parse(text)));
};

/** Undefined if the search is not refused at once. */
async function reasonOfRefusal(): Promise<unknown> {
  const signal = AbortSignal.timeout(500);
  const answer = await service.search(token, { keyword: "a" }, { signal }).catch(() => undefined);
  return answer?.body.error?.details.reason;
}

test("a worker that alone does not reach Postgres takes no searches and does not lead until it reaches Postgres again, and without any that does searches are refused", async () => {
  await service.until(async () => (await reporting()).length === 2 && (await leader()) !== null);
  for (const path of paths) path.cut();
  await service.until(async () => (await heartbeats()).every(({ reachesPostgres }) => !reachesPostgres));
  const [cutAtSeconds] = await redis.time();
  // Neither could do better, so both go on reporting, and one leads.
  const longAfterMs = (Number(cutAtSeconds) + 5) * 1_000;
  await service.until(async () => (await heartbeats()).every(({ atMs }) => atMs > longAfterMs));
  expect(await reporting()).toHaveLength(2);
  await service.until(async () => (await leader()) !== null);
  // None of them could settle a search, so none asks a provider, and callers learn it at once.
  await service.until(async () => (await reasonOfRefusal()) === "postgres_unreachable");
  for (const worker of service.workers) {
    const calls = (await Exposition.of(worker)).all("provider_calls_total");
    expect(Object.values(calls).filter((count) => count > 0)).toEqual([]);
  }

  paths[0]?.mend();
  await service.until(async () => (await reporting()).length === 1);
  await service.until(async () => (await leader()) === (await reporting())[0]);
  // The API reads once a second what the workers report.
  await service.until(async () => (await service.search(token, { keyword: "a" })).status === 200);
  const searches = Array.from({ length: 40 }, (_, at) => service.search(token, { keyword: `sandbox:slow=200 ${at}` }));
  expect((await Promise.all(searches)).filter(({ status }) => status !== 200)).toEqual([]);

  paths[1]?.mend();
  await service.until(async () => (await reporting()).length === 2);
  expect(await service.verify()).toMatchObject({ ok: true });
});

test("the searches of a worker that alone does not reach Postgres are answered by another one", async () => {
  await service.until(async () => (await reporting()).length === 2);
  const searches = Array.from({ length: 40 }, (_, at) => service.search(token, { keyword: `sandbox:slow=2000 ${at}` }));
  await service.untilRunning(40);
  paths[0]?.cut();
  expect((await Promise.all(searches)).filter(({ status }) => status !== 200)).toEqual([]);
  paths[0]?.mend();
  await service.until(async () => (await reporting()).length === 2);
  expect(await service.verify()).toMatchObject({ ok: true });
});

test("while Postgres answers and takes no writes, as with a full disk, searches are refused until it takes them again", async () => {
  const onOwner = (sql: string) => asOwner(service.databaseUrl, async (owner) => void (await owner.query(sql)));
  await onOwner(`create function refuse_writes() returns trigger language plpgsql
    as $$ begin raise 'No space left on device' using errcode = 'disk_full'; end $$`);
  for (const table of ["ledger_entries", "refunds"])
    await onOwner(`create trigger no_space before insert on ${table} execute function refuse_writes()`);
  await service.until(async () => (await reasonOfRefusal()) === "postgres_unreachable");
  await onOwner("drop function refuse_writes cascade");
  await service.until(async () => (await service.search(token, { keyword: "a" })).status === 200);
  expect(await service.verify()).toMatchObject({ ok: true });
});

test("a worker that started before the migration takes no searches, and is ready only after it", async () => {
  const name = "unmigrated";
  const url = Object.assign(new URL(service.databaseUrl), { pathname: `/${name}` }).href;
  await asOwner(service.databaseUrl, (owner) => owner.query(`create database ${name}`));
  onTestFinished(() =>
    asOwner(service.databaseUrl, async (owner) => void (await owner.query(`drop database ${name} with (force)`))),
  );
  const started = service.startWorker({ DATABASE_URL: url });
  await service.until(async () => service.workers.length === 3);
  const worker = service.workers[2];
  await worker?.line("this worker does not reach Postgres: it takes no searches");
  const missing = async () => (await fetch(`${worker?.opsUrl}/readyz`)).json();
  expect(await missing()).toMatchObject({ missing: expect.arrayContaining(["postgres"]) });
  const searches = Array.from({ length: 40 }, (_, at) => service.search(token, { keyword: `sandbox:slow=200 ${at}` }));
  expect((await Promise.all(searches)).filter(({ status }) => status !== 200)).toEqual([]);
  await migrate(url);
  expect(await (await started).stop()).toBe(0);
});
