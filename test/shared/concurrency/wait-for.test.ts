import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { waitFor, withTimeout } from "../../../shared/concurrency/wait-for.ts";

const never = new Promise<never>(() => undefined);

test("a promise that settles in time gives its value or its error", async () => {
  expect(await withTimeout(60_000, Promise.resolve(7))).toBe(7);
  await expect(withTimeout(60_000, Promise.reject(new Error("refused")))).rejects.toThrow("refused");
});

test("a promise that does not settle in time ends in an error that names the time", async () => {
  await expect(withTimeout(5, never)).rejects.toThrow("timed out after 5 ms");
});

test("a wait without time left still takes what is there already", async () => {
  expect(await waitFor(Promise.resolve(7), { timeoutMs: -1 })).toEqual({ ended: "done", value: 7 });
  expect(await waitFor(never, { timeoutMs: -1 })).toEqual({ ended: "timed_out" });
});

test("a wait ends at once when its signal is aborted, or was aborted before", async () => {
  const control = new AbortController();
  const wait = waitFor(never, { timeoutMs: 60_000, signal: control.signal });
  control.abort();
  expect(await wait).toEqual({ ended: "aborted" });
  expect(await waitFor(never, { timeoutMs: 60_000, signal: control.signal })).toEqual({ ended: "aborted" });
});

test("a wait leaves no listener on its signal", async () => {
  const { signal } = new AbortController();
  for (const promise of [Promise.resolve(1), Promise.reject(new Error("refused")), never])
    await waitFor(promise, { timeoutMs: 5, signal }).catch(() => undefined);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("a promise that fails after its timeout is no unhandled rejection", async () => {
  let fail = () => {};
  const late = new Promise<never>((_, reject) => (fail = () => reject(new Error("too late"))));
  await expect(withTimeout(1, late)).rejects.toThrow("timed out");
  fail();
  await new Promise((resolve) => setImmediate(resolve));
});
