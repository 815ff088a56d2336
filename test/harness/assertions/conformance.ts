import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Revision } from "../clients/agent.ts";
import { GuardedFolder } from "../processes/guarded-folder.ts";
import { run } from "../processes/run.ts";

const suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

const checks = z.array(z.object({ id: z.string(), status: z.string(), errorMessage: z.string().optional() }));

export interface Scenario {
  passed: number;
  /** The ids of the checks that failed, with the suite's message for each. */
  failed: Record<string, string>;
}

/** Runs all scenarios that a revision requires against a server. @returns the outcomes by scenario name. */
export async function runConformance(url: string, revision: Revision): Promise<Record<string, Scenario>> {
  const guarded = await GuardedFolder.create("serpmill-conformance-");
  const folder = guarded.path;
  try {
    const target = ["--url", `${url}/mcp`, "--requirements", revision, "--output-dir", folder];
    await run(suite, ["server", ...target], {});
    const scenarios = (await readdir(folder)).map(async (name) => {
      const found = checks.parse(JSON.parse(await readFile(join(folder, name, "checks.json"), "utf8")));
      const failed = found.filter(({ status }) => status === "FAILURE");
      const passed = found.filter(({ status }) => status === "SUCCESS").length;
      return [
        name.replace(/^server-/, "").replace(/-\d{4}-\d{2}-\d{2}T.*$/, ""),
        { passed, failed: Object.fromEntries(failed.map(({ id, errorMessage = "" }) => [id, errorMessage])) },
      ] as const;
    });
    return Object.fromEntries(await Promise.all(scenarios));
  } finally {
    guarded.remove();
  }
}
