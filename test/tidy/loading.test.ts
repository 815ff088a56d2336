import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { sources } from "../harness/assertions/sources.ts";
import { codeLoading } from "../harness/processes/code-loading.ts";

test("loading a file starts nothing: only the programs have effects", async () => {
  // Migration, local start and pinning are programs only when they are the ones started.
  const programs = new Set(["api/main.ts", "worker/main.ts", "commands/main.ts"]);
  const files = sources("{api,worker,commands,local,shared,deploy}/**/*.ts").filter(({ path }) => !programs.has(path));
  const loading = files.map(({ path }) => `import "./${path}";`).join("\n");
  const started = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", loading], {
    env: { ...codeLoading },
    timeout: 100_000, // Something that started would run forever. Loading takes half a minute on a busy machine.
  });
  expect(await started).toEqual({ stdout: "", stderr: "" });
});
