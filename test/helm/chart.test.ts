import { lstatSync, readlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { secretSettings } from "../../shared/config/secret-settings.ts";
import { settingNames } from "../harness/assertions/declared.ts";
import { readSource } from "../harness/assertions/sources.ts";
import { codesIn, page, tableRows } from "../docs/markdown.ts";

/** The chart's own files, without Helm: its version, its values and their documentation, and the files that it shares. */

const ofChart = (path: string) => `deploy/helm/${path}`;
const object = z.record(z.string(), z.unknown());
const values = object.parse(parse(readSource(ofChart("values.yaml"))));

interface Schema {
  properties?: Record<string, Schema> | undefined;
  additionalProperties?: unknown;
}
const schema: z.ZodType<Schema> = z.lazy(() =>
  z.object({ properties: z.record(z.string(), schema).optional(), additionalProperties: z.unknown().optional() }),
);
const declared = schema.parse(JSON.parse(readSource(ofChart("values.schema.json"))));

/** These are one value each, as Kubernetes defines it. */
const isWhole = (path: string) => /(^|\.)resources$|^settings$/.test(path);

/** Every value by its path. */
function leavesOf(node: unknown, path = ""): [path: string, value: unknown][] {
  const found = object.safeParse(node);
  if (!found.success || isWhole(path) || Object.keys(found.data).length === 0) return [[path, node]];
  return Object.entries(found.data).flatMap(([key, value]) => leavesOf(value, path === "" ? key : `${path}.${key}`));
}

function declaredPaths({ properties }: Schema, path = ""): string[] {
  if (properties === undefined || isWhole(path)) return [path];
  return Object.entries(properties).flatMap(([key, value]) =>
    declaredPaths(value, path === "" ? key : `${path}.${key}`),
  );
}

test("the chart has the version of the API", () => {
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(readSource("package.json")));
  expect(parse(readSource(ofChart("Chart.yaml")))).toMatchObject({ name: "serpmill", version, appVersion: version });
});

test("the rules and the proxy's configuration are the shipped files, not copies", () => {
  for (const path of ["prometheus/alerts.yml", "prometheus/objectives.yml", "proxy/haproxy.cfg"]) {
    const link = fileURLToPath(new URL(`../../deploy/helm/files/${path.replace(/^.*\//, "")}`, import.meta.url));
    expect(lstatSync(link).isSymbolicLink() && readlinkSync(link)).toBe(`../../${path}`);
  }
});

test("Helm refuses every value that the chart does not have", () => {
  // Helm itself gives each chart `global`.
  expect(
    declaredPaths(declared)
      .filter((path) => path !== "global")
      .toSorted(),
  ).toEqual(
    leavesOf(values)
      .map(([path]) => path)
      .toSorted(),
  );
  const open = (node: Schema, path: string): string[] => [
    ...(node.properties !== undefined && node.additionalProperties !== false ? [path] : []),
    ...Object.entries(node.properties ?? {}).flatMap(([key, value]) => open(value, `${path}.${key}`)),
  ];
  expect(open(declared, "")).toEqual([]);
});

test("values may set each setting but secrets, and those that the chart sets", () => {
  const byChart = ["HOST", "API_PORT", "API_OPS_PORT", "WORKER_OPS_PORT", "TRUSTED_PROXIES"];
  const others = new Set<string>([...secretSettings, ...byChart]);
  expect(Object.keys(declared.properties?.["settings"]?.properties ?? {}).toSorted()).toEqual(
    settingNames()
      .filter((name) => !others.has(name))
      .toSorted(),
  );
});

test("every value is documented with its default, and every documented value exists", () => {
  const required = new Set(["image.repository", "secrets.existingSecret"]);
  const shown = (path: string, value: unknown) => {
    if (required.has(path)) return "required";
    if (value === "") return "none";
    const isShort = typeof value !== "object" || value === null || Object.keys(value).length === 0;
    return isShort
      ? typeof value === "string"
        ? value.replace(/@sha256:\w+$/, "")
        : JSON.stringify(value)
      : "[values.yaml](../../deploy/helm/values.yaml)";
  };
  const rows = tableRows(page("docs/operating/kubernetes.md"), "value");
  expect(rows.map((row) => [codesIn(row["value"])[0], codesIn(row["default"])[0] ?? row["default"]])).toEqual(
    leavesOf(values).map(([path, value]) => [path, shown(path, value)]),
  );
});

test("the Secret that is documented has every secret", () => {
  const keys = tableRows(page("docs/operating/kubernetes.md"), "key").flatMap((row) => codesIn(row["key"]));
  const settings = keys.map((key) => key.replace(/^(REDIS_URL)_(API|WORKER)$/, "$1"));
  expect([...new Set(settings)].toSorted()).toEqual([...secretSettings].toSorted());
});
