import { setImmediate as immediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { Semaphore } from "../../../shared/concurrency/semaphore.ts";

test.each([1, 2])(
  "at most %i at a time, steps run in the order in which they came, and one that fails stops none",
  async (atOnce) => {
    const semaphore = new Semaphore(atOnce);
    const started: number[] = [];
    const ends = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
    const results = ends.map(({ promise }, at) =>
      semaphore.run(() => {
        started.push(at);
        return promise;
      }),
    );
    const settled = Promise.allSettled(results);
    for (const [at, end] of ends.entries()) {
      await immediate();
      expect(started).toEqual([0, 1, 2, 3, 4].slice(0, at + atOnce));
      if (at === 1) end.reject(new Error("no result"));
      else end.resolve(at);
    }
    expect((await settled).map((one) => (one.status === "fulfilled" ? one.value : one.status))).toEqual([
      0,
      "rejected",
      2,
      3,
      4,
    ]);
  },
);

test.each([1, 2])(
  "at most %i at a time, owners take turns: one with many steps holds no other back",
  async (atOnce) => {
    const semaphore = new Semaphore(atOnce);
    const started: string[] = [];
    const run = (step: string, owner: string) =>
      semaphore.run(async () => {
        started.push(step);
        await immediate();
      }, owner);
    const busy = Array.from({ length: 6 }, (_, at) => run(`A${at}`, "A"));
    const others = ["B0", "B1", "C0"].map((step) => run(step, step.charAt(0)));
    await Promise.all([...busy, ...others]);
    const first = started.slice(0, atOnce);
    expect(first).toEqual(["A0", "A1"].slice(0, atOnce));
    const left = ["A0", "A1", "A2", "A3", "A4", "A5"].slice(atOnce);
    expect(started.slice(atOnce)).toEqual(["B0", "C0", left[0], "B1", ...left.slice(1)]);
  },
);
