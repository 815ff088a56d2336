import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { withTimeout } from "../../../shared/concurrency/wait-for.ts";
import { explainPostgres, isTransient } from "../../../shared/database/transient-errors.ts";

test.each([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "EAI_AGAIN",
])("%s is transient: the statement is retried", (code) => {
  expect(isTransient(Object.assign(new Error(`connect ${code} 10.0.0.1:5432`), { code }))).toBe(true);
});

test("a Unix socket whose server has stopped is transient, and a file that is missing is not", async () => {
  const folder = await mkdtemp(join(tmpdir(), "serpmill-no-server-"));
  const url = `postgres:///serpmill?host=${folder}`;
  const stopped: unknown = await new pg.Client({ connectionString: url }).connect().catch((error: unknown) => error);
  const missing: unknown = await readFile(join(folder, "ca.pem")).catch((error: unknown) => error);
  await rm(folder, { recursive: true });
  expect([stopped, missing]).toMatchObject([{ code: "ENOENT" }, { code: "ENOENT" }]);
  expect([isTransient(stopped), isTransient(missing)]).toEqual([true, false]);
  expect(explainPostgres(stopped, url)?.message).toContain(`Postgres at ${folder} is unreachable`);
});

test("a wait for Postgres that came to its end is transient", async () => {
  const waiting = withTimeout(1, new Promise(() => undefined));
  expect(isTransient(await waiting.catch((error: unknown) => error))).toBe(true);
});

test("an error of the statement itself is not transient", () => {
  expect(isTransient(new TypeError("x is not a function"))).toBe(false);
  expect(isTransient("ECONNREFUSED")).toBe(false);
});
