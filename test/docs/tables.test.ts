import { expect, test } from "vitest";
import { z } from "zod";
import { readConfig } from "../../shared/config.ts";
import { fileSettingOf, secretSettings } from "../../shared/config/secret-settings.ts";
import { errorDefinitions } from "../../api/error-schemas.ts";
import { type ErrorCode, errors } from "../../shared/errors.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { allCommands } from "../harness/clients/admin.ts";
import { alertSeverities, settingNames } from "../harness/assertions/declared.ts";
import { readSource, sources } from "../harness/assertions/sources.ts";
import { accountPages } from "../../api/billing/frame/account-frame.ts";
import { refundReasons, reversalReasons } from "../../shared/outcomes.ts";
import { codesIn, page, tableRows } from "./markdown.ts";

/** Tables of the documentation against what the code declares, both ways. */

const byName = <T>(entries: readonly (readonly [string, T])[]) =>
  entries.toSorted(([one], [other]) => (one < other ? -1 : 1));

const configurationRows = tableRows(page("docs/operating/configuration.md"), "name").map((row) => {
  const [name = ""] = codesIn(row.name);
  return [name, codesIn(row.default)[0] ?? row.default ?? ""] as const;
});
test("every setting is documented with its default, and every documented setting exists", () => {
  const required = { DATABASE_URL: "postgres://host/name", REDIS_URL: "redis://host", SERP_PROVIDERS: "sandbox" };
  const pairs = z.record(z.string(), z.number()).transform((of) => Object.entries(of).map((pair) => pair.join("=")));
  const defaults = z
    .record(z.string(), z.union([z.string(), z.number(), z.array(z.unknown()), pairs]))
    .parse(readConfig(required));
  const declared = settingNames().map((name) => {
    if (name in required) return [name, "required"] as const;
    return [name, defaults[name]?.toString() || "none"] as const;
  });
  expect(declared.length).toBeGreaterThan(20);
  const documented = configurationRows.filter(([name]) => !composeOnly.has(name));
  expect(byName(documented)).toEqual(byName(declared));
});

const composeDefaults = new Map(
  [...readSource("docker-compose.yml").matchAll(/\$\{([A-Z_]+):(?:-([^}]*)|\?[^}]+)\}/g)]
    .map(([, name = "", value = "required"]) => [name, value] as const)
    .filter(([name]) => !settingNames().includes(name)),
);
const composeOnly = new Set(composeDefaults.keys());

test("every setting that only docker compose reads is documented with its default", () => {
  const documented = configurationRows.filter(([name]) => !settingNames().includes(name));
  expect(byName(documented)).toEqual(byName([...composeDefaults]));
});

test("the example environment has every setting, those of docker compose alone as comments, and no other", () => {
  const namesIn = (lines: RegExp) => [...readSource(".env.example").matchAll(lines)].map(([, name = ""]) => name);
  expect(namesIn(/^([A-Z0-9_]+)=/gm).toSorted()).toEqual(settingNames().toSorted());
  expect(namesIn(/^# ([A-Z][A-Z0-9_]+)=\S*$/gm).toSorted()).toEqual([...composeOnly].toSorted());
});

test("every setting that a page names exists", () => {
  const composeSecrets = [...readSource("docker-compose.yml").matchAll(/^ {2}([A-Z_]+): \{ file: /gm)];
  const known = new Set([
    ...settingNames(),
    ...secretSettings.map(fileSettingOf),
    ...composeOnly,
    ...composeSecrets.map(([, name]) => name),
    // deploy/redis/render-users.sh reads these.
    "REDIS_API_PASSWORD_FILE",
    "REDIS_WORKER_PASSWORD_FILE",
    "REDIS_REPLICA_PASSWORD",
    "REDIS_SENTINEL_PASSWORD",
    "REDIS_PROXY_PASSWORD",
    "SENTINEL_PEER_PASSWORD",
    "SENTINEL_OPERATOR_PASSWORD",
    // Callers set these for the clients, and for OpenAI's.
    "SERPMILL_TOKEN",
    "SERPMILL_URL",
    "OPENAI_API_KEY",
    "TEST_SERVERS",
    "CHROMIUM_PATH",
    "NO_COLOR", // A convention of terminals: https://no-color.org.
    "NODE_COMPILE_CACHE", // Of Node itself.
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "UV_THREADPOOL_SIZE",
    "CREATEROLE",
  ]);
  const files = [...sources("*.md", "docs/**/*.md", "deploy/**/*")];
  const unknown = files.flatMap(({ path, text }) =>
    [...text.matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g)]
      .filter(([, name = ""]) => !known.has(name))
      .map(([, name = ""]) => `${path}: ${name}`),
  );
  expect(unknown).toEqual([]);
});

const declaredMetric = z.object({ name: z.string(), labelNames: z.array(z.string()) });

test("every metric is documented with its labels, and every documented metric exists", () => {
  const declared = openMetrics()
    .registry.getMetricsAsArray()
    .map((metric) => declaredMetric.parse(metric))
    .filter(({ name }) => !/^(process|nodejs)_/.test(name))
    .map(({ name, labelNames }) => (labelNames.length > 0 ? `${name}{${labelNames.join(",")}}` : name));
  const documented = tableRows(page("docs/operating/monitoring.md"), "metric").flatMap((row) => codesIn(row.metric));
  expect(documented.toSorted()).toEqual(declared.toSorted());
});

test("every alert is documented with its severity, and every documented alert exists", () => {
  const documented = tableRows(page("docs/operating/monitoring.md"), "severity").flatMap((row) =>
    codesIn(row.alerts).map((name) => [name, row.severity ?? ""] as const),
  );
  expect(byName(documented)).toEqual(byName([...alertSeverities()]));
});

test("every admin command is documented with its arguments and options, and every documented one exists", () => {
  const cli = page("docs/operating/cli.md");
  const documented = tableRows(cli, "command").flatMap((row) =>
    codesIn(row.command).filter((code) => !code.startsWith("npm")),
  );
  expect(documented.map(signatureOf).toSorted()).toEqual(allCommands().map(signatureOfCommand).toSorted());
});

/** The command's words, its number of arguments and its options: `credit grant 2 --id --reason`. */
function signatureOfCommand({ words, command }: ReturnType<typeof allCommands>[number]): string {
  const options = command.options.map(({ long }) => long ?? "").toSorted();
  return `${words.join(" ")} ${command.registeredArguments.length} ${options.join(" ")}`.trim();
}

function signatureOf(usage: string): string {
  const options = [...usage.matchAll(/--[\w-]+/g)].map(([option]) => option).toSorted();
  const withoutOptions = usage.replace(/\[?--[\w-]+( [A-Z]+)?\]?/g, "").trim();
  const [words, args] = [withoutOptions.match(/\b[a-z-]+\b/g) ?? [], withoutOptions.match(/\b[A-Z]+\b/g) ?? []];
  return `${words.join(" ")} ${args.length} ${options.join(" ")}`.trim();
}

test("every account page of the navigation is documented", () => {
  const documented = new Set(tableRows(page("docs/account.md"), "path").flatMap((row) => codesIn(row.path)));
  const paths = accountPages.map(({ path }) => path).filter((path) => path !== "/playground");
  expect(paths.filter((path) => !documented.has(path))).toEqual([]);
});

test("every reason of a refund and of a reversal is documented, and every documented one exists", () => {
  const documented = tableRows(page("docs/ledger.md"), "decision").flatMap((row) =>
    codesIn(row.reason).map((reason) => `${row.decision} ${reason}`),
  );
  const declared = [
    ...refundReasons.map((reason) => `refund ${reason}`),
    ...reversalReasons.map((reason) => `reversal ${reason}`),
  ];
  expect(documented.toSorted()).toEqual(declared.toSorted());
});

const errorRows = tableRows(page("docs/api.md"), "status").map((row) => ({
  code: codesIn(row.code)[0] ?? "",
  status: Number(row.status),
  retry: row.retry,
  words: codesIn(`${row.when} ${row.details}`),
}));
const reasonRows = tableRows(page("docs/api.md"), "reason").flatMap((row) => codesIn(row.reason));

test("every error is documented with its status and whether to retry, and every documented error exists", () => {
  const declared = Object.entries(errors).map(([code, { status, retry }]) => [code, { status, retry }] as const);
  const documented = errorRows.map(
    ({ code, status, retry }) => [code, { status, retry: retry === "yes" || retry === "after `Retry-After`" }] as const,
  );
  expect(byName(documented)).toEqual(byName(declared));
});

const detailsSchema = z.object({
  properties: z.object({
    details: z.object({ properties: z.record(z.string(), z.looseObject({ enum: z.array(z.string()).optional() })) }),
  }),
});

test("every field of an error's details is documented, and every reason", () => {
  const undocumented = Object.entries(errorDefinitions).flatMap(([code, schema]) => {
    const { details } = detailsSchema.parse(z.toJSONSchema(schema)).properties;
    const words = new Set(errorRows.find((row) => row.code === code)?.words);
    const reasons = details.properties.reason?.enum ?? [];
    const known = (reason: string) => words.has(reason) || reasonRows.includes(reason);
    return [
      ...Object.keys(details.properties).filter((field) => !words.has(field)),
      ...reasons.filter((reason) => !known(reason)),
    ].map((word) => `${code}: ${word}`);
  });
  expect(undocumented).toEqual([]);
});

test("every documented reason exists", () => {
  const codes: ErrorCode[] = ["unavailable", "bad_request"];
  const declared = codes.flatMap((code) => {
    const { details } = detailsSchema.parse(z.toJSONSchema(errorDefinitions[code])).properties;
    return details.properties.reason?.enum ?? [];
  });
  expect(reasonRows.toSorted()).toEqual(declared.toSorted());
});
