import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { canMeasureProcesses, cpuUsOf, memoryBytesOf } from "./measure-processes.ts";

const busyMs = 200;
const burn = (ms: number) => {
  const from = process.cpuUsage();
  for (let used = process.cpuUsage(from); used.user + used.system < ms * 1_000; ) used = process.cpuUsage(from);
};

test.runIf(canMeasureProcesses)(
  "the CPU of a process includes that of its children, even after they have ended",
  () => {
    const before = cpuUsOf([process.pid]);
    burn(busyMs);
    const alone = cpuUsOf([process.pid]) - before;
    // The kernel counts in steps of 10 ms.
    expect(alone).toBeGreaterThanOrEqual((busyMs - 20) * 1_000);
    execFileSync(process.execPath, ["--eval", `const burn = ${burn.toString()}; burn(${busyMs})`]);
    const withChild = cpuUsOf([process.pid]) - before;
    expect(withChild - alone).toBeGreaterThanOrEqual((busyMs - 20) * 1_000);
  },
);

test.runIf(canMeasureProcesses)("the memory of a process is close to what it reports itself", () => {
  const own = process.memoryUsage.rss();
  expect(memoryBytesOf([process.pid]) / own).toBeGreaterThan(0.5);
  expect(memoryBytesOf([process.pid]) / own).toBeLessThan(2);
});

test("a process that has ended has used nothing", () => {
  const endedPid = 2 ** 30; // More than the kernel gives out.
  expect([cpuUsOf([endedPid]), memoryBytesOf([endedPid])]).toEqual([0, 0]);
});
