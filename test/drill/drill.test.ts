import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { alertSeverities } from "../harness/assertions/declared.ts";
import { readSource } from "../harness/assertions/sources.ts";
import { drills, notShown } from "./all.ts";
import { type DrillResult, groupWaitMs, isPassed, lastingAlerts } from "./drill.ts";
import { conclusionOf, reportOf } from "./report.ts";
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

const passed: DrillResult = {
  drill: "x-away",
  outage: "X is killed",
  isTotal: true,
  alerts: [{ name: "XUnreachable", severity: "page", afterMs: 41_400 }],
  missing: [],
  pagedAfterMs: 51_400,
  quietAfterMs: 20_000,
};

test.each([
  { result: passed, cells: ["`XUnreachable` (page) 41 s", "51 s", "120 s: met", "20 s"], isFailed: false },
  { result: { ...passed, pagedAfterMs: 120_001 }, cells: ["120 s: NOT MET"], isFailed: true },
  { result: { ...passed, pagedAfterMs: undefined }, cells: ["no page", "120 s: NOT MET"], isFailed: true },
  { result: { ...passed, missing: ["SearchesFail"] }, cells: ["MISSING: `SearchesFail`"], isFailed: true },
  { result: { ...passed, quietAfterMs: undefined }, cells: ["NOT QUIET"], isFailed: true },
  { result: { ...passed, isTotal: false, pagedAfterMs: undefined }, cells: ["no page", "none"], isFailed: false },
])("the report shows $cells, and whether the drill failed: $isFailed", ({ result, cells, isFailed }) => {
  for (const cell of cells) expect(reportOf([result])).toContain(cell);
  expect(isPassed(result)).toBe(!isFailed);
  expect(conclusionOf([result]).startsWith("1 of 1 drills failed: x-away")).toBe(isFailed);
});
