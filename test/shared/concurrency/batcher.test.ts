import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Batcher, BatchedLookup } from "../../../shared/concurrency/batcher.ts";

function recorded(options: { sizeMax: number; concurrency: number; pauseMs?: number }) {
  const batches: number[][] = [];
  const finish: (() => void)[] = [];
  const run = (items: number[]) => {
    batches.push(items);
    return new Promise<void>((resolve) => finish.push(resolve));
  };
  return { batcher: new Batcher<number>({ ...options, run }), batches, finish };
}

test("an item leaves in the turn in which it came, together with the items of that turn", async () => {
  const { batcher, batches } = recorded({ sizeMax: 10, concurrency: 1 });
  batcher.add(1);
  batcher.add(2);
  expect(batches).toEqual([]);
  await nextTurn();
  expect(batches).toEqual([[1, 2]]);
});

test("items that come while a batch runs leave together, in order, in batches of the largest size", async () => {
  const { batcher, batches, finish } = recorded({ sizeMax: 2, concurrency: 1 });
  batcher.add(1);
  await nextTurn();
  for (const item of [2, 3, 4]) batcher.add(item);
  await nextTurn();
  expect(batches).toEqual([[1]]);
  finish[0]?.();
  await nextTurn();
  expect(batches).toEqual([[1], [2, 3]]);
  finish[1]?.();
  await nextTurn();
  expect(batches).toEqual([[1], [2, 3], [4]]);
});

test("no more batches run at the same time than allowed", async () => {
  const { batcher, batches } = recorded({ sizeMax: 1, concurrency: 2 });
  for (const item of [1, 2, 3]) batcher.add(item);
  await nextTurn();
  expect(batches).toEqual([[1], [2]]);
});

test("a batcher is idle once nothing waits and nothing runs", async () => {
  const { batcher, finish } = recorded({ sizeMax: 1, concurrency: 1 });
  await batcher.idle();
  batcher.add(1);
  batcher.add(2);
  let isIdle = false;
  const idle = batcher.idle().then(() => (isIdle = true));
  await nextTurn();
  finish[0]?.();
  await nextTurn();
  expect(isIdle).toBe(false);
  finish[1]?.();
  await idle;
});

test("a batcher with a pause rests between two batches", async () => {
  const startedAtMs: number[] = [];
  const run = async () => {
    startedAtMs.push(performance.now());
  };
  const batcher = new Batcher<number>({ sizeMax: 1, concurrency: 1, pauseMs: 20, run });
  batcher.add(1);
  batcher.add(2);
  await batcher.idle();
  const [first = 0, second = 0] = startedAtMs;
  expect(second - first).toBeGreaterThanOrEqual(19);
});

test("a value that cannot be read fails its own key alone", async () => {
  const lookup = new BatchedLookup<string, number>({
    sizeMax: 10,
    concurrency: 1,
    nameOf: (key) => key,
    read: async () =>
      new Map([
        ["broken", Promise.reject(new Error("unreadable"))],
        ["whole", Promise.resolve(1)],
      ]),
  });
  const found = await Promise.allSettled(["broken", "whole", "absent"].map((key) => lookup.find(key)));
  expect(found).toMatchObject([{ status: "rejected" }, { value: 1 }, { value: undefined }]);
});
