import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { alertSeverities } from "./harness/assertions/declared.ts";
import { readSource } from "./harness/assertions/sources.ts";

/** Alertmanager: what it does with the alerts, and how it runs in docker compose. */

const parsed = (path: string): unknown => parse(readSource(path), { merge: true });

const configFile = z.strictObject({
  route: z.looseObject({
    receiver: z.literal("ticket"),
    group_by: z.array(z.string()),
    routes: z.tuple([
      z.looseObject({ matchers: z.tuple([z.literal('severity="page"')]), receiver: z.literal("page") }),
      z.looseObject({ matchers: z.tuple([z.literal('severity="heartbeat"')]), receiver: z.literal("heartbeat") }),
    ]),
  }),
  inhibit_rules: z.array(
    z.strictObject({
      source_matchers: z.array(z.string()),
      target_matchers: z.array(z.string()),
      equal: z.array(z.string()).optional(),
    }),
  ),
  receivers: z.array(
    z.strictObject({
      name: z.enum(["page", "ticket", "heartbeat"]),
      webhook_configs: z
        .tuple([z.strictObject({ url_file: z.string(), timeout: z.string(), send_resolved: z.boolean().optional() })])
        .optional(),
    }),
  ),
});
const shown = configFile.parse(parsed("deploy/alertmanager/alertmanager.yml"));
const sent = configFile.parse(parsed("deploy/alertmanager/webhook.yml"));

test("without a receiver alerts are grouped and silenced by the same rules as with one", () => {
  const { receivers, ...rules } = sent;
  const { receivers: none, ...same } = shown;
  expect(same).toEqual(rules);
  expect(none).toEqual([{ name: "page" }, { name: "ticket" }, { name: "heartbeat" }]);
  expect(receivers.map(({ name }) => name)).toEqual(["page", "ticket", "heartbeat"]);
});

test("the addresses of the receivers are in files that Git ignores, never in the configuration", () => {
  const files = sent.receivers.map(({ name, webhook_configs }) => [name, webhook_configs?.[0].url_file]);
  expect(files).toEqual([
    ["page", "/etc/alertmanager/webhooks/page"],
    ["ticket", "/etc/alertmanager/webhooks/ticket"],
    ["heartbeat", "/etc/alertmanager/webhooks/heartbeat"],
  ]);
  expect(readSource(".gitignore").split("\n")).toContain("deploy/alertmanager/webhooks/");
});

test("every alert that keeps others quiet, or is kept quiet, exists, and none does so to itself", () => {
  const alerts = alertSeverities();
  const namesIn = (matchers: readonly string[]) => matchers.flatMap((one) => one.match(/[A-Z]\w+/g) ?? []);
  for (const { source_matchers, target_matchers } of shown.inhibit_rules) {
    const [sources, targets] = [namesIn(source_matchers), namesIn(target_matchers)];
    expect([sources.length, targets.length]).not.toContain(0);
    expect([...sources, ...targets].filter((name) => !alerts.has(name))).toEqual([]);
    expect(sources.filter((name) => targets.includes(name))).toEqual([]);
  }
});

const watchdog = z.strictObject({
  alert: z.literal("Watchdog"),
  expr: z.literal("vector(1)"),
  labels: z.strictObject({ severity: z.literal("heartbeat") }),
  annotations: z.strictObject({ summary: z.string() }),
});
const watchdogFile = z.object({ groups: z.tuple([z.object({ rules: z.tuple([watchdog]) })]) });

test("the heartbeat comes each minute while Prometheus and Alertmanager work, whatever else fires, and never once they do not", () => {
  watchdogFile.parse(parsed("deploy/prometheus/watchdog.yml"));
  expect(parsed("deploy/prometheus/prometheus.yml")).toMatchObject({
    rule_files: expect.arrayContaining(["watchdog.yml"]),
  });
  const [, heartbeat] = sent.route.routes;
  expect(heartbeat).toMatchObject({ group_wait: "0s", group_interval: "30s", repeat_interval: "1m" });
  expect(sent.receivers.find(({ name }) => name === "heartbeat")?.webhook_configs?.[0].send_resolved).toBe(false);
  for (const { target_matchers } of sent.inhibit_rules) {
    const ofName = target_matchers.find((matcher) => matcher.startsWith("alertname"));
    expect(ofName).toMatch(/^alertname(=~?)"(?!.*(Watchdog|[.*+]))/);
  }
});

const container = z.looseObject({
  image: z.string(),
  user: z.literal("65534:65534"),
  read_only: z.literal(true),
  cap_drop: z.tuple([z.literal("ALL")]),
  security_opt: z.tuple([z.literal("no-new-privileges:true")]),
  mem_limit: z.string(),
  networks: z.array(z.string()),
  ports: z.array(z.string()).default([]),
});
const composeFile = z.object({ services: z.object({ alertmanager: container, node: container }) });
const prometheusFile = z.object({
  alerting: z.object({
    alertmanagers: z.tuple([z.object({ static_configs: z.tuple([z.object({ targets: z.array(z.string()) })]) })]),
  }),
});

test("Prometheus sends its alerts to the Alertmanager of the compose file, which only this machine reaches", () => {
  const { alertmanager, node } = composeFile.parse(parsed("docker-compose.yml")).services;
  const { alerting } = prometheusFile.parse(parsed("deploy/prometheus/prometheus.yml"));
  expect(alerting.alertmanagers[0].static_configs[0].targets).toEqual(["alertmanager:9093"]);
  expect(alertmanager.networks).toEqual(["ops", "${ALERTMANAGER_NETWORK:-console}"]);
  expect(alertmanager.ports).toEqual(["127.0.0.1:${ALERTMANAGER_PORT:-9093}:9093"]);
  expect([node.networks, node.ports]).toEqual([["ops"], []]);
  for (const { image } of [alertmanager, node]) expect(image).toMatch(/^prom\/[a-z-]+:v\d+\.\d+\.\d+$/);
});
