import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { openMetrics } from "../shared/metrics.ts";
import { faultsOf, seriesOf } from "./harness/assertions/promql.ts";
import { exists, readSource } from "./harness/assertions/sources.ts";

/** The dashboards are valid and use only metrics and labels that exist; the compose file mounts them. */

const known = seriesOf(openMetrics().registry, { up: [] });

const sentence = z.string().regex(/^[A-Z0-9].*[^.]$/);
const place = z.object({ x: z.int().min(0), y: z.int().min(0), w: z.int().min(1), h: z.int().min(1) });
const row = z.object({ type: z.literal("row"), id: z.int(), title: sentence, gridPos: place });
const source = z.object({ type: z.literal("prometheus"), uid: z.string().regex(/^\$\{datasource\}$/) });
const chart = z.object({
  type: z.enum(["stat", "timeseries", "state-timeline"]),
  id: z.int(),
  title: sentence,
  description: z.string().regex(/^[A-Z0-9][^.]*(\.\d[^.]*)*\.$/, "one sentence"),
  gridPos: place,
  datasource: source,
  fieldConfig: z.object({
    defaults: z.object({ unit: z.string().min(1), color: z.object({ mode: z.string() }) }),
    overrides: z.array(z.object({ matcher: z.object({ options: z.string() }) })).default([]),
  }),
  targets: z.array(z.object({ refId: z.string(), expr: z.string(), legendFormat: z.string() })).min(1),
});
const dashboardFile = z.object({
  uid: z.string().startsWith("serpmill-"),
  title: z.string().endsWith("?"),
  refresh: z.string(),
  templating: z.object({
    list: z.tuple([
      z.object({ name: z.literal("datasource"), type: z.literal("datasource"), query: z.literal("prometheus") }),
    ]),
  }),
  panels: z.array(z.discriminatedUnion("type", [row, chart])).min(1),
});
const dashboards = ["callers", "money", "providers", "queue"].map((name) =>
  dashboardFile.parse(JSON.parse(readSource(`deploy/grafana/dashboards/${name}.json`))),
);
const charts = dashboards.flatMap(({ panels }) => panels.filter((panel) => panel.type !== "row"));

test("panels of all dashboards, and their queries, have names of their own", () => {
  const twice = (names: readonly unknown[]) => names.filter((name, at) => names.indexOf(name) !== at);
  expect(twice(dashboards.map(({ uid }) => uid))).toEqual([]);
  for (const { panels } of dashboards) expect(twice(panels.map(({ id }) => id))).toEqual([]);
  expect(twice(dashboards.flatMap(({ panels }) => panels.map(({ title }) => title)))).toEqual([]);
  for (const { targets } of charts) expect(twice(targets.map(({ refId }) => refId))).toEqual([]);
});

test("the share of failed calls that a dashboard shows is of the calls that its alert counts", () => {
  const selected = (text = "") => new Set(text.match(/provider_calls_total\{[^}]*\}/g));
  const shown = charts.find(({ title }) => title === "Share of failed calls, by provider");
  const alert = selected(/alert: ProviderFails\n.*?for:/s.exec(readSource("deploy/prometheus/alerts.yml"))?.[0]);
  expect(alert.size).toBe(2);
  expect(selected(shown?.targets[0]?.expr)).toEqual(alert);
});

test.each(dashboards)("every panel of $uid stands within the grid, and on no other", ({ panels }) => {
  const cells = panels.flatMap(({ title, gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => ({ title, column: x + (at % w), line: y + Math.floor(at / w) })),
  );
  expect(cells.filter(({ column }) => column >= 24)).toEqual([]);
  const taken = Map.groupBy(cells, ({ column, line }) => `${column}/${line}`);
  expect([...taken.values()].filter((here) => here.length > 1).map((here) => here.map(({ title }) => title))).toEqual(
    [],
  );
});

const labelsIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, label]) => label ?? "");

test("every panel asks for metrics that there are, with labels that they have", () => {
  const faults = charts.flatMap(({ title, targets }) =>
    targets
      .flatMap(({ expr, legendFormat }) => faultsOf(expr, known, labelsIn(legendFormat, /\{\{(\w+)\}\}/g)))
      .map((fault) => `${title}: ${fault}`),
  );
  expect(faults).toEqual([]);
});

test("the lines of a chart have colours of their own, and no colour is for a line that there is not", async () => {
  const jobs = new Set(["api", "worker"]);
  const started = await openMetrics().registry.metrics();
  const isValue = (text: string) => text.startsWith("/") || jobs.has(text) || started.includes(`="${text}"`);
  const faults = charts
    .filter(({ type }) => type === "timeseries")
    .flatMap(({ title, targets, fieldConfig: { defaults, overrides } }) => {
      const lines = targets.map(({ legendFormat }) => legendFormat);
      const coloured = overrides.map(({ matcher }) => matcher.options);
      const ofValues = lines.some((line) => line.includes("{{")) ? coloured.filter(isValue) : [];
      const dead = coloured.filter((line) => !lines.includes(line) && !ofValues.includes(line));
      const bare = lines.filter((line) => (line.includes("{{") ? ofValues.length === 0 : !coloured.includes(line)));
      const isAlone = lines.length === 1 && !lines[0]?.includes("{{");
      const isOneColour = defaults.color.mode === "fixed" && bare.length > 0 && !isAlone;
      return [...dead.map((line) => `${title}: no ${line}`), ...(isOneColour ? [`${title}: lines of one colour`] : [])];
    });
  expect(faults).toEqual([]);
});

test.each([
  { expression: "sum(rate(charged_mils[5m]))", fault: "no metric charged_mils" },
  { expression: "rate(queue_wait_duration_seconds[5m])", fault: "no metric queue_wait_duration_seconds" },
  { expression: 'deliveries_total{reason="x"}', fault: "deliveries_total has no label reason" },
  { expression: "sum by (provider) (deliveries_total)", fault: "deliveries_total has no label provider" },
  { expression: "up / on (le) queue_depth", fault: "up has no label le" },
  { expression: "sum(rate(up[5m])", fault: "cannot be read at 16: sum(rate(up[5m])" },
  { expression: "vector(0)", fault: "selects no metric: vector(0)" },
  {
    expression: "sum by (kind) (settlements_total)",
    fault: "no reason in the result of sum by (kind) (settlements_total)",
  },
])("what is wrong with $expression is found", ({ expression, fault }) => {
  const shown = expression.includes("kind") ? ["reason"] : [];
  expect(faultsOf(expression, known, shown)).toContain(fault);
});

const composeFile = z.object({
  services: z.record(
    z.string(),
    z.object({ volumes: z.array(z.string()).default([]), profiles: z.array(z.string()).optional() }),
  ),
});
const providers = z.object({ providers: z.array(z.object({ options: z.object({ path: z.string() }) })) });
const datasources = z.object({ datasources: z.array(z.object({ type: z.string(), url: z.string() })) });
const scrapes = z.object({
  rule_files: z.array(z.string()),
  scrape_configs: z.array(z.object({ job_name: z.string() })),
});

test("the compose file mounts what is there, where Prometheus and Grafana look for it", () => {
  const { services } = composeFile.parse(parse(readSource("docker-compose.yml"), { merge: true }));
  const mounts = Object.values(services)
    .flatMap(({ volumes }) => volumes.map((volume) => volume.split(":")))
    .filter(([from = ""]) => from.startsWith("./"));
  expect(mounts.filter(([from = "", , mode]) => !exists(from) || mode !== "ro")).toEqual([]);
  expect(mounts.map(([from]) => from)).toContain("./deploy/prometheus");

  const [provider] = providers.parse(parse(readSource("deploy/grafana/dashboards.yml"))).providers;
  const dashboardsAt = mounts.find(([from]) => from === "./deploy/grafana/dashboards")?.[1];
  expect(dashboardsAt).toBe(provider?.options.path);
  const { datasources: asked } = datasources.parse(parse(readSource("deploy/grafana/datasource.yml")));
  expect(asked).toEqual([{ type: "prometheus", url: "http://prometheus:9090" }]);
  // A plain `docker compose up` starts no Grafana.
  expect(Object.entries(services).flatMap(([name, { profiles }]) => (profiles ? [name] : []))).toEqual(["grafana"]);

  const { rule_files, scrape_configs } = scrapes.parse(parse(readSource("deploy/prometheus/prometheus.yml")));
  expect(rule_files.filter((file) => !exists(`deploy/prometheus/${file}`))).toEqual([]);
  expect(scrape_configs.map(({ job_name }) => job_name)).toEqual([
    "api",
    "worker",
    "prometheus",
    "alertmanager",
    "node",
  ]);
});

const withRedis = z.object({ services: z.object({ redis: z.object({ command: z.array(z.string()) }) }) });

test("no Redis that is set up here takes snapshots, because it would refuse every write while one fails", () => {
  for (const path of ["docker-compose.yml", "deploy/quick.yml"]) {
    const { redis } = withRedis.parse(parse(readSource(path), { merge: true })).services;
    expect(redis.command.join(" ")).toContain(" --save  --");
  }
  for (const path of ["docs/operating/deploying.md", "docs/operating/datastores.md"])
    expect(readSource(path)).toContain('save ""');
});
