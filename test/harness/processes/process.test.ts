import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { eventually } from "../assertions/eventually.ts";

/** A program that starts a worker as tests do, and prints its process id. The worker waits for a Redis that is not there. */
const program = `
  import { RunningProcess } from "${new URL("./process.ts", import.meta.url).href}";
  const settings = { DATABASE_URL: "postgres://127.0.0.1:1/none", REDIS_URL: "redis://127.0.0.1:1", SERP_PROVIDERS: "sandbox" };
  console.log(new RunningProcess("worker/main.ts", settings).child.pid);
`;

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("a process that a test started is killed when the test's process is killed", async () => {
  const parent = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(createInterface(parent.stdout), "line");
  const pid = Number(line);
  expect(isAlive(pid)).toBe(true);
  parent.kill("SIGKILL");
  await eventually(async () => !isAlive(pid));
});
