import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { openMetrics } from "../shared/metrics.ts";
import { faultsOf, seriesOf } from "./harness/assertions/promql.ts";
import { exists, readSource } from "./harness/assertions/sources.ts";

/** The dashboard and the alerts are valid, and use only metrics and labels that exist. */

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
  fieldConfig: z.object({ defaults: z.object({ unit: z.string().min(1) }) }),
  targets: z
    .array(z.object({ datasource: source, refId: z.string(), expr: z.string(), legendFormat: z.string() }))
    .min(1),
});
const dashboardFile = z.object({
  uid: z.literal("serpmill"),
  refresh: z.string(),
  templating: z.object({
    list: z.tuple([
      z.object({ name: z.literal("datasource"), type: z.literal("datasource"), query: z.literal("prometheus") }),
    ]),
  }),
  panels: z.array(z.discriminatedUnion("type", [row, chart])).min(1),
});
const dashboard = dashboardFile.parse(JSON.parse(readSource("deploy/grafana/serpmill.json")));
const charts = dashboard.panels.filter((panel) => panel.type !== "row");

const alertsFile = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          for: z.string(),
          labels: z.object({ severity: z.enum(["page", "ticket"]) }),
          annotations: z.object({ summary: z.string().min(1), description: z.string().optional() }),
        }),
      ),
    }),
  ),
});
const alerts = alertsFile.parse(parse(readSource("deploy/prometheus/alerts.yml"))).groups.flatMap(({ rules }) => rules);

test("panels, their queries and alerts have names of their own", () => {
  const twice = (names: readonly unknown[]) => names.filter((name, at) => names.indexOf(name) !== at);
  expect(twice(dashboard.panels.map(({ id }) => id))).toEqual([]);
  expect(twice(dashboard.panels.map(({ title }) => title))).toEqual([]);
  expect(twice(alerts.map(({ alert }) => alert))).toEqual([]);
  for (const { targets } of charts) expect(twice(targets.map(({ refId }) => refId))).toEqual([]);
});

test("every panel stands within the grid, and on no other", () => {
  const cells = dashboard.panels.flatMap(({ title, gridPos: { x, y, w, h } }) =>
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

test("every alert asks for metrics that there are, with labels that they have", () => {
  const faults = alerts.flatMap(({ alert, expr, annotations: { summary, description = "" } }) =>
    faultsOf(expr, known, labelsIn(`${summary} ${description}`, /\$labels\.(\w+)/g)).map(
      (fault) => `${alert}: ${fault}`,
    ),
  );
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
    z.object({
      volumes: z.array(z.string()).default([]),
      profiles: z.array(z.string()).optional(),
      networks: z.array(z.string()),
      environment: z.record(z.string(), z.string()).default({}),
    }),
  ),
});
const providers = z.object({ providers: z.array(z.object({ options: z.object({ path: z.string() }) })) });
const datasources = z.object({ datasources: z.array(z.object({ type: z.string(), url: z.string() })) });
const scrapes = z.object({
  rule_files: z.array(z.string()),
  scrape_configs: z.array(z.object({ job_name: z.string() })),
});

test("an API has no way out unless its operator asks for one, and a worker cannot take payments", () => {
  const { services } = composeFile.parse(parse(readSource("docker-compose.yml"), { merge: true }));
  expect(services["api"]?.networks).toEqual(["data", "ops", "${API_NETWORK:-edge}"]);
  const { environment: ofApi } = services["api"] ?? {};
  const unpaid = { STRIPE_SECRET_KEY: "", STRIPE_WEBHOOK_SECRET: "" };
  expect(services["worker"]?.environment).toEqual({ ...ofApi, ...unpaid, REDIS_URL: expect.any(String) });
});

const passwordsOf = (name: string) => {
  const { services } = composeFile.parse(parse(readSource("docker-compose.yml"), { merge: true }));
  const values = Object.values(services[name]?.environment ?? {}).join(" ");
  return [...values.matchAll(/\$\{(\w*PASSWORD)\b/g)].map(([, password = ""]) => password).toSorted();
};

test("the compose file has no passwords, and gives each container only those that it needs", () => {
  const text = readSource("docker-compose.yml");
  const given = [...text.matchAll(/\$\{(\w*PASSWORD)\b([^}]*)\}/g)].map(([, name, fallback]) => ({ name, fallback }));
  expect(given.filter(({ fallback }) => fallback !== ":?run sh deploy/passwords.sh")).toEqual([]);
  expect(text).not.toMatch(/:\/\/[\w-]*:[^$]*@/);
  const [owner, login, api, worker] = [
    "POSTGRES_PASSWORD",
    "POSTGRES_PROCESS_PASSWORD",
    "REDIS_API_PASSWORD",
    "REDIS_WORKER_PASSWORD",
  ];
  expect(passwordsOf("api")).toEqual([login, api]);
  expect(passwordsOf("worker")).toEqual([login, worker]);
  expect(passwordsOf("migrate")).toEqual([owner, login]);
  expect(passwordsOf("postgres")).toEqual([owner]);
  expect(passwordsOf("redis")).toEqual([api, worker]);
  // What .env has would reach every container of ours otherwise.
  const hidden = { MIGRATION_DATABASE_URL: "", ...Object.fromEntries(given.map(({ name }) => [name, ""])) };
  const { services } = composeFile.parse(parse(text, { merge: true }));
  for (const name of ["api", "worker"]) expect(services[name]?.environment).toMatchObject(hidden);
});

test("each password is written once to a .env that has none, readable for its owner alone, and a given one stays", async () => {
  const folder = await mkdtemp(join(tmpdir(), "serpmill-passwords-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "deploy"));
  await cp("deploy/passwords.sh", join(folder, "deploy/passwords.sh"));
  await cp(".env.example", join(folder, ".env.example"));
  const passwordsAfter = async () => {
    await promisify(execFile)("/bin/sh", [join(folder, "deploy/passwords.sh")]);
    const text = await readFile(join(folder, ".env"), "utf8");
    return [...text.matchAll(/^(POSTGRES|REDIS)_\w*PASSWORD=(.+)$/gm)].map(([line]) => line);
  };
  const first = await passwordsAfter();
  expect(first).toHaveLength(4);
  expect(new Set(first.map((line) => line.split("=")[1])).size).toBe(4);
  expect((await stat(join(folder, ".env"))).mode & 0o777).toBe(0o600);
  expect(await passwordsAfter()).toEqual(first);
  await writeFile(join(folder, ".env"), "REDIS_API_PASSWORD=chosen\n");
  expect(await passwordsAfter()).toEqual(expect.arrayContaining(["REDIS_API_PASSWORD=chosen"]));
});

test("the compose file mounts what is there, where Prometheus and Grafana look for it", () => {
  const { services } = composeFile.parse(parse(readSource("docker-compose.yml"), { merge: true }));
  const mounts = Object.values(services)
    .flatMap(({ volumes }) => volumes.map((volume) => volume.split(":")))
    .filter(([from = ""]) => from.startsWith("./"));
  expect(mounts.filter(([from = "", , mode]) => !exists(from) || mode !== "ro")).toEqual([]);
  expect(mounts.map(([from]) => from)).toContain("./deploy/prometheus");

  const [provider] = providers.parse(parse(readSource("deploy/grafana/dashboards.yml"))).providers;
  const dashboardAt = mounts.find(([from]) => from === "./deploy/grafana/serpmill.json")?.[1];
  expect(dashboardAt).toBe(`${provider?.options.path}/serpmill.json`);
  const { datasources: asked } = datasources.parse(parse(readSource("deploy/grafana/datasource.yml")));
  expect(asked).toEqual([{ type: "prometheus", url: "http://prometheus:9090" }]);
  // A plain `docker compose up` starts no Grafana.
  expect(Object.entries(services).flatMap(([name, { profiles }]) => (profiles ? [name] : []))).toEqual(["grafana"]);

  const { rule_files, scrape_configs } = scrapes.parse(parse(readSource("deploy/prometheus/prometheus.yml")));
  expect(rule_files.filter((file) => !exists(`deploy/prometheus/${file}`))).toEqual([]);
  expect(scrape_configs.map(({ job_name }) => job_name)).toEqual(["api", "worker", "prometheus"]);
});
