import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { alertSeverities } from "../harness/assertions/declared.ts";
import { readSource } from "../harness/assertions/sources.ts";
import { drills, notShown } from "./all.ts";
import { groupWaitMs, lastingAlerts } from "./drill.ts";
import { configOf } from "./scrape-targets.ts";

/** The parts of `npm run drill` that need no processes. */

const severities = alertSeverities();

test("a drill raises every alert, or the list says why none does", () => {
  const shown = new Set(drills.flatMap(({ expects }) => expects));
  const listed = [...shown, ...Object.keys(notShown)];
  expect(listed.toSorted()).toEqual([...severities.keys()].toSorted());
  expect([...lastingAlerts].filter((name) => !severities.has(name))).toEqual([]);
});

test("each total outage expects a page", () => {
  const silent = drills.filter(
    ({ isTotal, expects }) => isTotal && !expects.some((name) => severities.get(name) === "page"),
  );
  expect(silent.map(({ name }) => name)).toEqual([]);
});

test("a drill watches the service with the shipped rules, jobs and intervals, and adds the shipped wait for a page", () => {
  const text = readSource("deploy/prometheus/prometheus.yml");
  const addresses = { own: "127.0.0.1:1", alertmanager: "127.0.0.1:2", targets: { folder: "/targets" } };
  const config = z
    .looseObject({ rule_files: z.array(z.string()), scrape_configs: z.array(z.looseObject({ job_name: z.string() })) })
    .parse(parse(configOf(text, addresses)));
  expect(config["global"]).toEqual(parse(text).global);
  expect(config.rule_files.map((file) => file.split("/").slice(-2).join("/"))).toEqual([
    "prometheus/objectives.yml",
    "prometheus/alerts.yml",
  ]);
  expect(config.scrape_configs).toEqual([
    { job_name: "api", file_sd_configs: [{ files: ["/targets/api.json"] }] },
    { job_name: "worker", file_sd_configs: [{ files: ["/targets/worker.json"] }] },
    { job_name: "prometheus", static_configs: [{ targets: ["127.0.0.1:1"] }] },
    { job_name: "alertmanager", static_configs: [{ targets: ["127.0.0.1:2"] }] },
  ]);
  const pages = parse(readSource("deploy/alertmanager/alertmanager.yml")).route.routes[0];
  expect(pages.group_wait).toBe(`${groupWaitMs / 1_000}s`);
});
