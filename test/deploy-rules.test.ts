import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { doorNames } from "../shared/config.ts";
import { openMetrics } from "../shared/metrics.ts";
import { anchorsOf, inlineCode, page } from "./docs/markdown.ts";
import { faultsOf, seriesOf } from "./harness/assertions/promql.ts";
import { readSource, sources } from "./harness/assertions/sources.ts";

/** The rules of Prometheus: valid, tested each, and every alert has a section in the runbook. */

const folder = "deploy/prometheus";
const runbook = "docs/operating/runbook.md";

const alert = z.strictObject({
  alert: z.string(),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(["page", "ticket"]) }),
  annotations: z.strictObject({ summary: z.string().min(1), description: z.string().optional(), runbook: z.string() }),
});
const record = z.strictObject({ record: z.string(), expr: z.string() });
const groupsOf = <Rule extends z.ZodType>(rule: Rule) =>
  z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(rule) })) });
const rulesIn = <Rule extends z.ZodType>(file: string, rule: Rule) =>
  groupsOf(rule)
    .parse(parse(readSource(`${folder}/${file}`)))
    .groups.flatMap(({ rules }) => rules);
const alerts = rulesIn("alerts.yml", alert);
const records = rulesIn("objectives.yml", record);

test("the objectives count the searches at every door", () => {
  const named = records.flatMap(({ expr }) => [...expr.matchAll(/\/\(([a-z|]+)\)\//g)].map(([, names = ""]) => names));
  expect([...new Set(named)]).toEqual([doorNames.toSorted().join("|")]);
});

const ofOthers = {
  up: [],
  node_filesystem_avail_bytes: ["device", "fstype", "mountpoint"],
  node_filesystem_size_bytes: ["device", "fstype", "mountpoint"],
  alertmanager_notifications_failed_total: ["integration", "reason"],
  prometheus_notifications_errors_total: ["alertmanager"],
};
const recorded = Object.fromEntries(records.map((rule) => [rule.record, []]));
const known = seriesOf(openMetrics().registry, { ...ofOthers, ...recorded });

test("the runbook asks for metrics that there are, and where searches fail for the routes of the objectives", () => {
  const queries = inlineCode(page(runbook)).filter((code) => /\[\d+[mh]\]/.test(code));
  expect(queries.flatMap((query) => faultsOf(query, known))).toEqual([]);
  const [routes = "none"] = records.flatMap(({ expr }) => expr.match(/route=~"[^"]*\/mcp[^"]*"/) ?? []);
  expect(queries.join("\n")).toContain(routes);
});

const twice = (names: readonly string[]) => names.filter((name, at) => names.indexOf(name) !== at);

test("rules have names of their own", () => {
  expect(twice([...alerts.map((rule) => rule.alert), ...records.map((rule) => rule.record)])).toEqual([]);
});

test("every rule asks for metrics that there are, with labels that they have", () => {
  const labelsIn = (text: string) => [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label = ""]) => label);
  const faults = [
    ...alerts.flatMap(({ alert: name, expr, annotations: { summary, description = "" } }) =>
      faultsOf(expr, known, labelsIn(`${summary} ${description}`)).map((fault) => `${name}: ${fault}`),
    ),
    ...records.flatMap((rule) => faultsOf(rule.expr, known).map((fault) => `${rule.record}: ${fault}`)),
  ];
  expect(faults).toEqual([]);
});

test("every alert leads to its section of the runbook, and no section is without an alert", () => {
  const named = alerts.map((rule) => rule.annotations.runbook);
  expect(named).toEqual(alerts.map((rule) => `${runbook}#${rule.alert.toLowerCase()}`));
  const anchors = anchorsOf(page(runbook));
  expect(named.filter((link) => !anchors.has(link.split("#")[1] ?? ""))).toEqual([]);
  const sections = [...page(runbook).prose.matchAll(/^### (.+)$/gm)].map(([, title = ""]) => title);
  expect(sections.toSorted()).toEqual(alerts.map((rule) => rule.alert).toSorted());
});

const testFile = z.object({
  tests: z.array(
    z.object({
      name: z.string(),
      alert_rule_test: z.array(z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()) })).default([]),
      promql_expr_test: z.array(z.object({ expr: z.string() })).default([]),
    }),
  ),
});
const testFiles = sources(`${folder}/*.test.yml`).map(({ path, text }) => ({ path, ...testFile.parse(parse(text)) }));

test("every alert has a case in which it fires, and one in which it stays quiet throughout", () => {
  const cases = testFiles.flatMap(({ tests }) => tests.map((one) => one.alert_rule_test));
  const firing = new Set(cases.flatMap((checks) => checks.filter((check) => check.exp_alerts.length > 0)).map(nameOf));
  const quiet = new Set(
    cases.filter((checks) => checks.every((check) => check.exp_alerts.length === 0)).flatMap((all) => all.map(nameOf)),
  );
  const names = alerts.map((rule) => rule.alert);
  expect(names.filter((name) => !firing.has(name))).toEqual([]);
  expect(names.filter((name) => !quiet.has(name))).toEqual([]);
});

const nameOf = (check: { alertname: string }) => check.alertname;

test("every recorded series has a case", () => {
  const asked = testFiles.flatMap(({ tests }) => tests.flatMap((one) => one.promql_expr_test.map(({ expr }) => expr)));
  const isAsked = (name: string) => asked.some((expr) => new RegExp(`${name}\\b`).test(expr));
  expect(records.map((rule) => rule.record).filter((name) => !isAsked(name))).toEqual([]);
});

const isMissing = spawnSync("promtool", ["--version"]).error !== undefined;
const withoutPromtool = isMissing ? " (skipped: there is no promtool)" : "";

// Days of metrics take it tens of seconds of one core.
describe.skipIf(isMissing)(`with promtool${withoutPromtool}`, { timeout: 600_000 }, () => {
  const promtool = (...args: string[]) => promisify(execFile)("promtool", args);

  test("Prometheus takes the rules", async () => {
    const files = ["alerts.yml", "objectives.yml", "watchdog.yml"].map((file) => `${folder}/${file}`);
    expect((await promtool("check", "rules", "--lint=all", "--lint-fatal", ...files)).stdout).toContain("SUCCESS");
  });

  test.for(testFiles)("the cases of $path hold", async ({ path }) => {
    expect((await promtool("test", "rules", path)).stdout).toContain("SUCCESS");
  });

  async function temporaryFile(content: object): Promise<string> {
    const temporary = await mkdtemp(join(tmpdir(), "serpmill-promtool-"));
    onTestFinished(() => rm(temporary, { recursive: true }));
    const path = join(temporary, "file.yml");
    await writeFile(path, stringify(content));
    return path;
  }

  const panel = z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).default([]) });
  const panels = sources("deploy/grafana/dashboards/*.json").flatMap(
    ({ text }) => z.object({ panels: z.array(panel) }).parse(JSON.parse(text)).panels,
  );

  test("Prometheus takes every query of the dashboards", async () => {
    const rules = panels
      .flatMap(({ targets }) => targets)
      .map(({ expr }, at) => ({ record: `query:${at}`, expr: expr.replaceAll("$__rate_interval", "5m") }));
    expect(rules.length).toBeGreaterThan(0);
    const file = await temporaryFile({ groups: [{ name: "dashboards", rules }] });
    expect((await promtool("check", "rules", file)).stdout).toContain(`SUCCESS: ${rules.length} rules found`);
  });

  test("the dashboard counts searches of the API, at doors and over MCP, and their failures", async () => {
    const counted = (series: string, perSecond: number) => ({
      series: series.replace("{", '{job="api",'),
      values: `0+${perSecond * 15}x300`,
    });
    const http = (route: string, status: number, perSecond: number) =>
      counted(`http_request_duration_seconds_count{route="${route}",status="${status}"}`, perSecond);
    const tool = (outcome: string, perSecond: number) =>
      counted(`mcp_calls_total{tool="search",outcome="${outcome}"}`, perSecond);
    const shown = (title: string, value: number) => {
      const expr = panels.find((one) => one.title === title)?.targets[0]?.expr ?? "";
      return { expr: `round(${expr}, 0.001)`, eval_time: "70m", exp_samples: [{ labels: "{}", value }] };
    };
    const file = await temporaryFile({
      tests: [
        {
          interval: "15s",
          input_series: [
            http("/v1/serp/search", 200, 40),
            http("/serper/search", 200, 20),
            tool("answered", 15),
            http("/v1/serp/search", 503, 8),
            http("/serper/search", 504, 7),
            tool("engine_error", 5),
            http("/serper/search", 499, 3),
            http("/mcp", 200, 20),
            http("/mcp", 503, 5),
            http("/docs", 503, 50),
          ],
          promql_expr_test: [shown("Searches per second", 98), shown("Availability, last hour", 0.75)],
        },
      ],
    });
    expect((await promtool("test", "rules", file)).stdout).toContain("SUCCESS");
  });

  test("KEDA's query is the searches that wait and run per slot, whatever other installations in the cluster do", async () => {
    const scaledObject = z.object({
      spec: z.object({ triggers: z.tuple([z.object({ metadata: z.object({ query: z.string() }) })]) }),
    });
    // What a test of the chart compares with the rendered one.
    const reviewed = /^@@ everything ScaledObject .*\n((?:\+.*\n)+)/m.exec(
      readSource("test/helm/golden/objects.diff"),
    )?.[1];
    const { spec } = scaledObject.parse(parse((reviewed ?? "").replace(/^\+/gm, "")));
    const expr = spec.triggers[0].metadata.query;
    const pod = (service: string, name: string, metric: string, value: number, namespace = "search") => ({
      series: `${metric}{namespace="${namespace}",service="serpmill-${service}",pod="${name}"}`,
      values: `${value}x8`,
    });
    const file = await temporaryFile({
      tests: [
        {
          interval: "15s",
          input_series: [
            // Each API reads the depth of the same queue.
            pod("api", "a", "queue_depth", 30),
            pod("api", "b", "queue_depth", 30),
            pod("worker", "a", "worker_slots_taken", 32),
            pod("worker", "b", "worker_slots_taken", 18),
            pod("worker", "a", "worker_slots", 32),
            pod("worker", "b", "worker_slots", 32),
            pod("api", "c", "queue_depth", 900, "another"),
            pod("worker", "c", "worker_slots_taken", 900, "another"),
          ],
          promql_expr_test: [{ expr, eval_time: "2m", exp_samples: [{ labels: "{}", value: (30 + 32 + 18) / 64 }] }],
        },
      ],
    });
    expect((await promtool("test", "rules", file)).stdout).toContain("SUCCESS");
  });
});
