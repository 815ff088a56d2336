import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { LocalServer } from "../../../local/local-server.ts";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { refuseUnconfined } from "../../../shared/database/pool.ts";
import { openLog } from "../../../shared/log.ts";
import { seesWorkers } from "../../harness/assertions/metrics.ts";
import { Operator } from "../../harness/processes/operator.ts";
import { RunningProcess } from "../../harness/processes/process.ts";
import { Service } from "../../harness/processes/service.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openPatiently } from "../../harness/servers/open-database.ts";
import { withoutPgbouncer, startPgbouncer } from "../../harness/servers/pgbouncer.ts";

/** The whole service behind a PgBouncer that gives each transaction any of three sessions. */

const log = openLog({ name: "test", level: "silent" });
const ignored =
  "ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout,extra_float_digits";

describe.skipIf(withoutPgbouncer !== "")(`behind PgBouncer in transaction mode${withoutPgbouncer}`, () => {
  let service: Service;
  let pooler: LocalServer;
  let pooled: Record<string, string>;
  beforeAll(async () => {
    service = await Service.start({ apis: 0, workers: 0 });
    pooler = await startPgbouncer(service.processDatabaseUrl);
    pooled = { DATABASE_URL: pooler.url, DATABASE_POOLER: "transaction" };
  });
  afterAll(async () => {
    await service.stop();
    await pooler.stop();
  });

  /** Asks for its first session as a process that starts does. */
  const useFirst = (url: string, isPooled: boolean) => {
    const shutdown = new Shutdown();
    onTestFinished(() => shutdown.run(log));
    return refuseUnconfined(openPatiently({ url, isPooled, sizeMax: 1, log, shutdown }));
  };

  test("searches at the same time are answered and charged, repeats are replayed, and the ledger is whole", async () => {
    await service.startWorker(pooled);
    const api = await service.startApi(pooled);
    await service.until(() => seesWorkers(api));
    const { token, organizationId } = await service.organization({ creditMils: 1_000 });
    const keyed = (n: number) => service.search(token, { keyword: `tea ${n}` }, { key: `key-${n}` });
    const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => keyed(n)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await keyed(0)).text).toBe(answers[0]?.text);
    expect(await service.usage(token)).toMatchObject({ status: 200 });
    await service.rest();
    expect((await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge")).toHaveLength(40);
    const operator = new Operator(service, pooled);
    await operator.create("free", "--credit", "50");
    expect(await operator.run("ledger", "verify")).toMatchObject({ ok: true });
    expect([...service.apis, ...service.workers].flatMap(({ errors }) => errors)).toEqual([]);
  });

  test.each([
    ["as it is", []],
    ["that ignores the time-outs that a process asks for", [ignored]],
  ])(
    "without DATABASE_POOLER a PgBouncer %s is refused with a sentence that names the setting",
    async (_, settings) => {
      const found = await startPgbouncer(service.processDatabaseUrl, settings);
      onTestFinished(found.stop);
      await expect(useFirst(found.url, false)).rejects.toThrow("set DATABASE_POOLER=transaction");
    },
  );

  test("a pooler that drops time-outs ends a process also if it was out of reach when the process started", async () => {
    const ignoring = await startPgbouncer(service.processDatabaseUrl, [ignored]);
    onTestFinished(ignoring.stop);
    process.kill(ignoring.pid, "SIGSTOP");
    onTestFinished(() => void process.kill(ignoring.pid, "SIGCONT"));
    const worker = new RunningProcess("worker/main.ts", { ...service.environment, DATABASE_URL: ignoring.url });
    onTestFinished(() => worker.destroy());
    await worker.line("started");
    process.kill(ignoring.pid, "SIGCONT");
    await service.until(async () => worker.hasEnded);
    expect(worker.child.exitCode).toBe(1);
    expect(worker.lines.find(({ level }) => level === 60)?.msg).toMatch(/set DATABASE_POOLER=transaction/);
  });

  test("a login that could do more, or has no time-outs, is refused with what is wrong", async () => {
    const owners = await startPgbouncer(service.databaseUrl);
    onTestFinished(owners.stop);
    await expect(useFirst(owners.url, true)).rejects.toThrow(
      /more than the processes need, .*its lock_timeout is not 1 to 2000 ms, its statement_timeout is not 1 to 5000 ms/,
    );
  });

  test("a login that does not inherit the rights of serpmill, or is not read committed, is refused with that reason", async () => {
    const login = Object.assign(new URL(service.databaseUrl), { username: "powerless", password: "made-up" }).href;
    await asOwner(
      service.databaseUrl,
      "create role powerless login password 'made-up' noinherit in role serpmill; alter role powerless set statement_timeout = 1000; alter role powerless set default_transaction_isolation = 'serializable'",
    );
    const other = await startPgbouncer(login);
    onTestFinished(async () => {
      await other.stop();
      await asOwner(service.databaseUrl, "drop role powerless");
    });
    await expect(useFirst(other.url, true)).rejects.toThrow(
      /but it does not inherit the rights of serpmill, its idle_in_transaction_session_timeout is not 1 to 10000 ms, its lock_timeout is not 1 to 2000 ms, its default_transaction_isolation is not read committed \(/,
    );
  });
});
