import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { execFile } from "node:child_process";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { migrate } from "../../shared/database/migrate.ts";
import { startGuardedProcess } from "../../local/guarded-process.ts";
import { startPostgres } from "../../local/postgres.ts";
import { eventually } from "../harness/assertions/eventually.ts";
import { runAdminHere } from "../harness/clients/admin.ts";
import { codeLoading } from "../harness/processes/code-loading.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { run } from "../harness/processes/run.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { startRedisPair } from "../harness/servers/redis-pair.ts";
import { startSentinels } from "../harness/servers/sentinels.ts";
import { freshDatabase, freshRedis } from "../harness/servers/servers.ts";

/** `npm start`, from its first line to Ctrl-C. */

const guarded = await GuardedFolder.create("serpmill-start-");
// For root, Postgres runs as another user. One that cannot enter this folder would get another for its data, which stays.
await chmod(guarded.path, 0o711);
const [database, redis] = await Promise.all([freshDatabase(), freshRedis()]);
afterAll(async () => {
  await redis.stop();
  await database.drop();
  guarded.remove();
});

const program = fileURLToPath(new URL("../../local/start.ts", import.meta.url));

/** Starts it with its data in a folder of its own, on free ports. Without the servers it starts its own. */
async function start(folder: string, settings: Record<string, string> = {}) {
  const given = { DATABASE_URL: database.url, REDIS_URL: redis.url, ...settings };
  const ports = { API_PORT: "0", API_OPS_PORT: "0", WORKER_OPS_PORT: "0" };
  const { process: child, stop: end } = await startGuardedProcess(
    process.execPath,
    [program, "--folder", join(guarded.path, folder)],
    {
      env: { PATH: process.env.PATH, ...codeLoading, ...ports, ...given },
      stdio: ["ignore", "pipe", "pipe"],
      stopSignal: "SIGINT",
    },
  );
  onTestFinished(end);
  const started = { child, text: "", exited: once(child, "close") };
  for (const output of [child.stdout, child.stderr])
    output?.setEncoding("utf8").on("data", (text: string) => (started.text += text));
  return started;
}

/** @returns what it printed, and its exit code. */
async function stop({ child, exited, ...started }: Awaited<ReturnType<typeof start>>) {
  child.kill("SIGINT");
  const [exitCode] = await exited;
  return { ...started, exitCode };
}

test("it prints progress at once, and in the end every address with a token that works, also where Sentinels know Redis", async () => {
  const pair = await startRedisPair();
  onTestFinished(pair.close);
  const sentinels = await startSentinels(pair.servers[0]);
  onTestFinished(sentinels.close);
  const { REDIS_URL = "", ...login } = sentinels.settings("api");
  // The user without a password accepts any, and may do what the API, the worker and the sign-in code need.
  const address = REDIS_URL.replace(/\/\/.*@/, "//default:it's@");
  const started = await start("whole", { REDIS_URL: address, KEPT_ANSWERS_DAYS: "30", ...login });
  await eventually(async () => started.text.includes("Operator's commands"));
  expect(started.text).toMatch(
    /^Starting Serpmill\. Ctrl-C stops everything\.\n\n✓ Postgres +from DATABASE_URL\n… Redis +connecting\n✓ Redis +from REDIS_URL\n/,
  );
  const [, api = "", token = ""] = /^ {2}API +(\S+)\n {2}Token +(smk_\w+)$/m.exec(started.text) ?? [];
  expect(started.text).toContain(
    `  Reference   ${api}/docs\n  Account     ${api}/billing\n  Playground  ${api}/playground\n  Agents      ${api}/mcp?names=plain\n`,
  );
  expect(started.text).not.toContain("\u001b[");
  expect(started.text).toMatch(
    /^! Worker +SERP_PROVIDERS has sandbox: it makes answers up, and callers pay for them\./m,
  );
  const sourced = await promisify(execFile)("sh", ["-c", `. '${join(guarded.path, "whole/env")}' && env`]);
  for (const setting of ["SERP_PROVIDERS=sandbox", `REDIS_URL=${address}`, "KEPT_ANSWERS_DAYS=30"])
    expect(`\n${sourced.stdout}`).toContain(`\n${setting}\n`);
  const [, link = "", code = ""] = /^ {2}(\S+\/playground)#sign-in=([\w-]{43})$/m.exec(started.text) ?? [];
  expect(link).toBe(`${api}/playground`);
  const form = { method: "POST", redirect: "manual", headers: { "sec-fetch-site": "same-origin" } } as const;
  const signIn = await fetch(`${api}/billing/sign-in`, {
    ...form,
    body: new URLSearchParams({ code, next: "/playground" }),
  });
  expect([signIn.status, signIn.headers.get("location")]).toEqual([303, "/playground"]);
  const usage = await fetch(`${api}/v1/usage`, { headers: { Authorization: `Bearer ${token}` } });
  expect(usage.status).toBe(200);
  expect(await stop(started)).toMatchObject({ exitCode: 0 });
  expect(started.text).toMatch(/\nStopping\n✓ Worker +stopped\n✓ API +stopped\n$/);
  await expect(fetch(`${api}/v1/usage`)).rejects.toThrow("fetch failed");
});

test("a shell with the settings of the last start starts private servers again, and keeps the user's servers, the token and its organization", async () => {
  const first = await start("sourced", { REDIS_URL: "" });
  await eventually(async () => first.text.includes("Operator's commands"));
  const { stdout } = await promisify(execFile)("sh", ["-c", `. '${join(guarded.path, "sourced/env")}' && env`]);
  const sourced = Object.fromEntries([...stdout.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
  expect(sourced).toMatchObject({ DATABASE_URL: database.url, SERPMILL_PRIVATE_URLS: sourced.REDIS_URL });
  const client = new Redis(sourced.REDIS_URL ?? "");
  expect(await client.info("memory")).toMatch(/^maxmemory:402653184\r$/m);
  client.disconnect();
  const admin = async (...args: string[]) => JSON.parse((await runAdminHere(args, sourced)).stdout);
  const token = await readFile(join(guarded.path, "sourced/token"), "utf8");
  const { orgId, name } = await admin("token", "find", token);
  expect(name).toBe("npm start");
  await admin("credit", "correct", orgId, "-950", "--reason", "spent");
  await stop(first);
  const second = await start("sourced", sourced);
  await eventually(async () => second.text.includes("Operator's commands"));
  expect(await readFile(join(guarded.path, "sourced/token"), "utf8")).toBe(token);
  expect(await admin("org", "show", orgId)).toMatchObject({ balanceMils: 1_050 });
  await stop(second);
  expect(second.text).toMatch(/^✓ Token {7}reused, with 1000 mils of new credit, in /m);
  expect(second.text).toMatch(/^✓ Postgres {4}from DATABASE_URL\n(?:… .*\n)*✓ Redis {7}started on/m);
});

test("an unknown option is named, with the help, and starts nothing", async () => {
  const { exitCode, stdout, stderr } = await run("local/start.ts", ["--foo"], {});
  expect([exitCode, stdout]).toEqual([2, ""]);
  expect(stderr).toMatch(/^Unknown option '--foo'[^]*\n\nnpm start: runs Serpmill/);
});

test("wrong settings are said once and together, before any server starts", async () => {
  const wrong = { DATABASE_URL: "", SERP_PROVIDERS: "foo", SEARCH_DEADLINE_MS: "5", API_PORT: "80000" };
  const started = await start("wrong settings", wrong);
  expect(await started.exited).toEqual([1, null]);
  expect(started.text).toMatch(
    /^Starting Serpmill.*\n\n\n✗ These settings are missing or wrong:(\n {2}(API_PORT: expected a whole number from 0 to 65535|SEARCH_DEADLINE_MS: .*|SERP_PROVIDERS: .*)){3}\n\nStopping\n$/,
  );
});

test.each([
  ["Postgres", "DATABASE_URL", "postgres"],
  ["Redis", "REDIS_URL", "redis"],
])("a given %s that does not answer is named with its address and %s", async (name, setting, scheme) => {
  const started = await start(`no ${name}`, { [setting]: `${scheme}://user:canary@127.0.0.1:1/0` });
  expect(await started.exited).toEqual([1, null]);
  expect(started.text).toContain(
    `✗ ${name} at 127.0.0.1:1 is unreachable: connect ECONNREFUSED 127.0.0.1:1. Check ${setting}, and that the server runs and is reachable.\n`,
  );
  expect(started.text).not.toContain("canary");
});

test.each([
  ["DATABASE_URL", {}],
  ["MIGRATION_DATABASE_URL", { MIGRATION_DATABASE_URL: "postgres://owner:canary@127.0.0.1:1/z" }],
])("the migration names a Postgres that does not answer, and the setting %s", async (setting, given) => {
  const settings = { DATABASE_URL: "postgres://x:canary@127.0.0.1:1/z", ...given };
  expect(await run("shared/database/migrate.ts", [], settings)).toEqual({
    exitCode: 1,
    stdout: "",
    stderr: `Postgres at 127.0.0.1:1 is unreachable: connect ECONNREFUSED 127.0.0.1:1. Check ${setting}, and that the server runs and is reachable.\n`,
  });
});

test.each([
  ["Starting Serpmill", {}],
  ["… Postgres    starting", { DATABASE_URL: "" }],
  ["… API         starting", {}],
])("Ctrl-C is answered in the phase %j, with exit code 0", async (phase, settings) => {
  const started = await start(`phase ${phase.slice(2, 14).trim()}`, settings);
  await eventually(async () => started.text.includes(phase));
  expect(await stop(started)).toMatchObject({ exitCode: 0 });
  expect(started.text).toContain("\nStopping\n");
});

test("a database of a newer release is said in one sentence with what to do, and left as it is", async () => {
  const newer = await freshDatabase();
  await asOwner(newer.url, (owner) => owner.query("insert into migrations (version, name) values (9999, 'future')"));
  const started = await start("newer", { DATABASE_URL: newer.url });
  await eventually(async () => started.text.includes("✓ Migrations"));
  await stop(started);
  await newer.drop();
  expect(started.text).toMatch(
    /^! Migrations {2}The database is of a newer release \(migration 9999, this release ends with \d+\) and is left as it is: start that release again, or use another database\.$/m,
  );
});

test("data of another baseline is refused in one sentence that names the folder to delete", async () => {
  const folder = join(guarded.path, "baseline");
  const postgres = await startPostgres({ folder: join(folder, "postgres"), durable: true });
  await migrate(postgres.url);
  await asOwner(postgres.url, (owner) => owner.query("update migrations set md5 = 'other' where version = 1"));
  await postgres.stop();
  const started = await start("baseline", { DATABASE_URL: "" });
  expect(await started.exited).toEqual([1, null]);
  expect(started.text).toContain(
    `✗ The database has another schema than this release: its migration 1 is not 001.do.organizations.sql. The schema changed before the first release, and nothing converts it: delete the folder ${folder} and start again.\n`,
  );
});

test("a database of an older or a newer Postgres is refused in one sentence with what to do", async () => {
  const folder = join(guarded.path, "postgres");
  await (await startPostgres({ folder })).stop();
  for (const version of ["12", "99"]) {
    await writeFile(join(folder, "data", "PG_VERSION"), `${version}\n`);
    await expect(startPostgres({ folder })).rejects.toThrow(
      new RegExp(
        `is of Postgres ${version}, and this release has Postgres \\d+: start the release that made it, or delete`,
      ),
    );
  }
});
