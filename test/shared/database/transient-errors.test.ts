import { expect, test } from "vitest";
import { withTimeout } from "../../../shared/concurrency/wait-for.ts";
import { isTransient } from "../../../shared/database/transient-errors.ts";

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

test("a wait for Postgres that came to its end is transient", async () => {
  const waiting = withTimeout(1, new Promise(() => undefined));
  expect(isTransient(await waiting.catch((error: unknown) => error))).toBe(true);
});

test("an error of the statement itself is not transient", () => {
  expect(isTransient(new TypeError("x is not a function"))).toBe(false);
  expect(isTransient("ECONNREFUSED")).toBe(false);
});
