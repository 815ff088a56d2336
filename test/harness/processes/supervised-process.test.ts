import { once } from "node:events";
import { expect, test } from "vitest";
import { SupervisedProcess, usualSettings } from "./supervised-process.ts";

test("an error in the log, output to stderr and an end that was not requested are defects of a process", async () => {
  const environment = { ...usualSettings, DATABASE_URL: "postgres://127.0.0.1:1/none", NODE_DEBUG: "timer" };
  const broken = new SupervisedProcess({ kind: "worker", number: 1, environment });
  broken.start();
  if (broken.run) await once(broken.run.child, "close");
  expect(broken.isRunning).toBe(false);
  expect(broken.defects()).toEqual([
    expect.stringMatching(/^worker 1 logged an error: .*REDIS_URL/),
    expect.stringMatching(/^worker 1 wrote to stderr: TIMER/),
    "worker 1 ended by itself with exit code 1",
  ]);
  expect(broken.opsUrl).toBeUndefined();
  await broken.close();
});
