import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { run } from "../../harness/processes/run.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

const inspector = "node_modules/.bin/mcp-inspector";

// The inspector makes a folder in it, or in the checkout.
const home = await mkdtemp(join(tmpdir(), "serpmill-inspector-"));
afterAll(() => rm(home, { recursive: true }));

const service = await usualService();
const { token } = await service.organization();

test.each([
  [["--method", "tools/list", "--strict"], "serp_search"],
  [["--method", "tools/call", "--tool-name", "serp_search", "--tool-arg", "keyword=garden pump"], "creditsCharged"],
  [["--method", "tools/call", "--tool-name", "usage.get"], "creditBalanceMils"],
])("the protocol's inspector accepts %j", async (args, expectedOutput) => {
  const target = [`${service.apis[0]?.url}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${token}`];
  const { exitCode, stdout, stderr } = await run(inspector, ["--cli", ...target, ...args], { HOME: home });
  expect(stdout).toContain(expectedOutput);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
});
