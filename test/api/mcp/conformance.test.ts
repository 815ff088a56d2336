import { readdir, readFile } from "node:fs/promises";
import { request as ask } from "node:http";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { run } from "../../harness/processes/run.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";
import { listen, type Listening } from "../../harness/stubs/listen.ts";

/**
 * The protocol's conformance suite. It expects a server with certain tools, prompts and resources. Scenarios that need
 * those prove nothing about this server, even if they pass, and are left out; the other tests of this folder cover it.
 */

const suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const checksFile = z.array(z.object({ id: z.string(), status: z.string() }));

const service = await usualService();
const proxy = await startTokenProxy(service.apis[0]?.url ?? "", (await service.organization()).token);
afterAll(() => proxy.close());

/** Scenarios that do not apply, with the reason. */
const notApplicable: [why: string, scenarios: RegExp][] = [
  ["there are no resources", /^(resources-|sep-2164-resource-not-found$)/],
  ["there are no prompts", /^prompts-/],
  ["nothing is completed", /^completion-complete$/],
  ["no log is sent to clients", /^(logging-set-level|tools-call-with-logging)$/],
  ["nothing is asked of the client", /^(input-required-result-|elicitation-|tools-call-(sampling|elicitation)$)/],
  ["no search is a task", /^tasks-/],
  ["no argument is sent in a header", /^http-custom-header-server-validation$/],
  ["no stream is resumed", /^server-sse-polling$/],
  ["it calls tools of the suite's own", /^(tools-call-|json-schema-2020-12$)/],
];

/** The scenarios that apply, each with its checks that do not apply. */
const applying = {
  "2026-07-28": {
    "server-stateless": [
      "sep-2575-server-rejects-undeclared-capability", // It calls a tool of the suite's own, as do the next three.
      "sep-2575-missing-capability-http-400",
      "sep-2575-http-server-no-independent-requests-on-stream",
      "sep-2575-server-no-log-without-loglevel",
    ],
    "tools-list": [],
    "server-sse-multiple-streams": [],
    "dns-rebinding-protection": [],
    caching: [
      "sep-2549-prompts-list-caching-hints", // There are neither prompts nor resources.
      "sep-2549-resources-list-caching-hints",
      "sep-2549-resources-templates-list-caching-hints",
    ],
    "http-header-validation": [],
  },
  "2025-11-25": {
    "server-initialize": [],
    ping: [],
    "tools-list": [],
    "server-sse-multiple-streams": [],
    "dns-rebinding-protection": [],
    "server-session-lifecycle": [],
  },
} as const;

test.each(["2026-07-28", "2025-11-25"] as const)(
  "the conformance suite of %s finds nothing in the scenarios that apply",
  async (revision) => {
    const found = await runConformance(proxy.url, revision);
    const applicable = Object.entries(found).filter(
      ([scenario]) => !notApplicable.some(([, named]) => named.test(scenario)),
    );
    const failed = applicable.map(([scenario, outcome]) => [scenario, outcome.failed.toSorted()]);
    const expected = Object.entries(applying[revision]).map(([scenario, checks]) => [scenario, [...checks].toSorted()]);
    expect(Object.fromEntries(failed)).toEqual(Object.fromEntries(expected));
    expect(applicable.filter(([, { passed }]) => passed === 0)).toEqual([]);
  },
);

/** Runs all scenarios that a revision requires. @returns by scenario name how many checks passed, and which failed. */
async function runConformance(url: string, revision: keyof typeof applying) {
  const folder = await GuardedFolder.create("serpmill-conformance-");
  try {
    const target = ["--url", `${url}/mcp`, "--requirements", revision, "--output-dir", folder.path];
    await run(suite, ["server", ...target], {});
    const scenarios = (await readdir(folder.path)).map(async (name) => {
      const found = checksFile.parse(JSON.parse(await readFile(join(folder.path, name, "checks.json"), "utf8")));
      const idsOf = (wanted: string) => found.filter(({ status }) => status === wanted).map(({ id }) => id);
      const scenario = name.replace(/^server-/, "").replace(/-\d{4}-\d{2}-\d{2}T.*$/, "");
      return [scenario, { passed: idsOf("SUCCESS").length, failed: idsOf("FAILURE") }] as const;
    });
    return Object.fromEntries(await Promise.all(scenarios));
  } finally {
    folder.remove();
  }
}

/** A proxy that adds the token to every request, for programs that have no setting for one. */
function startTokenProxy(target: string, token: string): Promise<Listening> {
  const { hostname, port } = new URL(target);
  return listen((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const onward = ask({ hostname, port, method: request.method, path: request.url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.once("close", () => onward.destroy());
    request.pipe(onward);
  });
}
