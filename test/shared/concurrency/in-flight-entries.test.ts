import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { InFlightEntries } from "../../../shared/concurrency/in-flight-entries.ts";

test("holds the last entry of each key, and any text can be a key", () => {
  const entries = new InFlightEntries<number>();
  for (const key of ["a", "__proto__", "constructor", ""]) entries.set(key, 1);
  entries.set("a", 2);
  entries.delete("constructor");
  entries.delete("missing");
  expect(entries.size).toBe(3);
  expect(["a", "__proto__", "", "constructor", "toString"].map((key) => entries.get(key))).toEqual([
    2,
    1,
    1,
    undefined,
    undefined,
  ]);
  expect(entries.values()).toEqual([2, 1, 1]);
});

// Each entry holds 1 kB. Fifty are in the map at any time, as with fifty searches under way.
const churn = `
  import { InFlightEntries } from ${JSON.stringify(new URL("../../../shared/concurrency/in-flight-entries.ts", import.meta.url).href)};
  const keptBytes = (entries) => {
    let next = 0;
    const search = () => {
      entries.set("search-" + next, { answer: new Array(128).fill(next) });
      entries.delete("search-" + (next - 50));
      next += 1;
    };
    for (let i = 0; i < 1_000; i++) search();
    gc();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 50_000; i++) search();
    gc({ type: "minor" });
    gc({ type: "minor" });
    return process.memoryUsage().heapUsed - before;
  };
  const ofMap = keptBytes(new Map());
  console.log(keptBytes(new InFlightEntries()) / ofMap);
`;

test("what has ended is collected while it is young, where a Map keeps it until the next full collection", async () => {
  // With room for all of it V8 does no full collection of its own meanwhile.
  const args = ["--expose-gc", "--initial-heap-size=1024", "--input-type=module", "--eval", churn];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(Number(stdout)).toBeLessThan(0.2);
});
