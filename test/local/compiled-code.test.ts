import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("a second run of an operator's command reads compiled code instead of compiling it", async () => {
  const command = ["NODE_DEBUG_NATIVE=COMPILE_CACHE", "npm", "run", "--silent", "admin", "--", "--version"];
  await promisify(execFile)("env", command);

  const { stderr } = await promisify(execFile)("env", command);

  const lines = stderr.split("\n");
  expect(lines).toContainEqual(expect.stringMatching(/StrippedTypeScript .*\/commands\/main\.ts.*success/));
  expect(lines).toContainEqual(expect.stringMatching(/ESM .*\/commands\/main\.ts was accepted/));
});
