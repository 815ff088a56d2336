import { afterAll, expect, test } from "vitest";
import { runConformance } from "../../harness/assertions/conformance.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";
import { startTokenProxy } from "../../harness/stubs/token-proxy.ts";

/**
 * The protocol's conformance suite. It expects a server with certain tools, prompts and resources. Scenarios that need
 * those prove nothing about this server, even if they pass, and are left out; the other tests of this folder cover it.
 */

const service = await usualService();
const proxy = await startTokenProxy(service.apis[0]?.url ?? "", (await service.organization()).token);
afterAll(async () => {
  await proxy.close();
});

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
    const failed = applicable.map(([scenario, outcome]) => [scenario, Object.keys(outcome.failed).toSorted()]);
    const expected = Object.entries(applying[revision]).map(([scenario, checks]) => [scenario, [...checks].toSorted()]);
    expect(Object.fromEntries(failed)).toEqual(Object.fromEntries(expected));
    expect(applicable.filter(([, { passed }]) => passed === 0)).toEqual([]);
  },
);
