import { expect, test } from "vitest";
import { z } from "zod";
import {
  functionsOf,
  type Import,
  importsOf,
  packagesOf,
  places,
  readSource,
  sources,
} from "./harness/assertions/sources.ts";

/** The rules of the house. Each failure names file and line; an exception stands here with its reason, or not at all. */

const fileLinesMax = 400;
const functionLinesMax = 70;

const entries = [
  "api/main.ts",
  "worker/main.ts",
  "commands/main.ts",
  "shared/database/migrate.ts",
  "local/start.ts",
  "local/welcome.ts",
];

const product = sources("{api,worker,commands,local,shared,deploy}/**/*.ts");
const tests = sources("test/**/*.ts");
// The clients that callers install, and what builds them. Their types are generated.
const clients = sources("clients/*.ts", "clients/typescript/src/*.ts").filter(
  ({ path }) => !path.endsWith("/schema.ts"),
);
const all = [...product, ...clients, ...tests, ...sources("*.ts")];
const scripts = sources("{api,worker,shared}/**/*.lua");
const everything = sources("{api,worker,commands,local,shared,test,deploy,clients}/**/*", "*").filter(({ path }) =>
  /\.[a-z]+$/.test(path),
);

const importedBy = new Map<string, Import[]>(all.map((source) => [source.path, importsOf(source)]));
const filesOf = (path: string) => (importedBy.get(path) ?? []).filter(({ isFile }) => isFile);
const partOf = (path: string) => path.split("/")[0] ?? "";

/** What is found beyond the exceptions; and an exception that nothing needs any more, which has to go. */
function beyond(exceptions: Record<string, string>, found: readonly string[]): string[] {
  const isExcepted = (place: string, file: string) => place === file || place.startsWith(`${file}:`);
  const files = Object.keys(exceptions);
  return [
    ...found.filter((place) => !files.some((file) => isExcepted(place, file))),
    ...files.filter((file) => !found.some((place) => isExcepted(place, file))).map((file) => `not needed: ${file}`),
  ];
}

test("shared imports no other part, api and worker import shared alone, and the commands all three", () => {
  const allowed: Record<string, string[]> = {
    api: ["api", "shared"],
    worker: ["worker", "shared"],
    shared: ["shared"],
    commands: ["commands", "api", "worker", "shared"],
    local: ["local", "api", "shared"],
    deploy: ["deploy"],
    clients: ["clients", "api"],
    test: ["api", "worker", "commands", "local", "shared", "deploy", "clients", "test"],
  };
  const wrong = [...product, ...clients, ...tests].flatMap(({ path }) =>
    filesOf(path)
      .filter(({ target }) => !allowed[partOf(path)]?.includes(partOf(target)))
      .map(({ target }) => `${path} -> ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("no file is longer than four screens, and no function than one and a half", () => {
  const files = [...all, ...scripts].filter(({ lines }) => lines.length > fileLinesMax);
  const functions = all.flatMap((source) =>
    functionsOf(source)
      .filter(({ length }) => length > functionLinesMax)
      .map(({ at, length, name }) => `${source.path}:${at}: ${length} lines: ${name}`),
  );
  expect([...files.map(({ path, lines }) => `${path}: ${lines.length} lines`), ...functions]).toEqual([]);
});

test("no file or folder has a name that says nothing", () => {
  const forbidden = /^(utils?|helpers?|common|misc|services?|managers?|controllers?|repositor(y|ies)|lib|types|index)$/;
  const exceptions = {
    "test/harness/processes/service.ts": "the whole service with its servers, as a test starts it",
    "deploy/systemd/serpmill-api@.service": "systemd's ending of a unit",
    "deploy/systemd/serpmill-migrate.service": "the same",
    "deploy/systemd/serpmill-worker@.service": "the same",
    "deploy/systemd/serpmill-.service.d/hardening.conf": "the same",
    "deploy/systemd/haproxy.service.d/serpmill.conf": "the same",
    "worker/concurrency-controller.ts": "the controller of a feedback loop",
    "test/worker/concurrency-controller.test.ts": "its test",
  };
  const named = everything.map(({ path }) => path).filter((path) => path.split(/[/.-]/).some((n) => forbidden.test(n)));
  expect(beyond(exceptions, named)).toEqual([]);
});

test("settings are read in one place", () => {
  const exceptions = {
    "shared/config.ts": "the place",
    "local/start.ts": "it decides the environment that the processes get",
    "local/welcome.ts": "the settings of its container, for the command that it starts",
    "local/redis.ts": "the path, for the script that starts the server",
    "test/faults/mutants/run.ts": "the path, for the commands that have to catch a mutant",
    "test/harness/clients/chromium.ts": "where the browser is that tests start",
    "test/harness/servers/containers.ts": "testcontainers has no other way to set this",
    "test/harness/servers/servers.ts": "decides where the servers of the tests run",
    "test/harness/servers/sentinels.ts": "the path, for the script that starts them",
    "test/harness/clients/python.ts": "the path, on which it finds Python",
    "test/local/start.test.ts": "the path, on which it finds a Redis",
    "vitest.config.ts": "the compiled code of vitest's workers",
  };
  expect(beyond(exceptions, places(all, /\bprocess\.env\b/))).toEqual([]);
});

test("nothing is left for later, and nothing knows the machine that it was written on", () => {
  const others = everything.filter(({ path }) => path !== "test/tidy.test.ts" && path !== "package-lock.json");
  const machine = /(^|["'`\s(=:])(\/(home|Users|root|work|mnt)\/|[A-Z]:\\\\)/;
  const found = [
    ...places(others, /\b(TODO|FIXME|XXX)\b/, ({ lines }) => lines),
    ...places(others, machine, ({ lines }) => lines),
  ];
  expect(found).toEqual([]);
});

test("no test looks beyond the checkout", () => {
  const above = tests.flatMap((source) => {
    const depth = source.path.split("/").length - 1;
    return places([source], new RegExp(`["'\`](\\.\\./){${depth + 1}}`), ({ lines }) => lines);
  });
  const exceptions = {
    "test/worker/providers/whole-answers.test.ts": "recordings beside the checkout, where there are any",
  };
  expect(beyond(exceptions, above)).toEqual([]);
});

test("every Lua script names its keys, arguments and outcomes on top", () => {
  const exceptions = {
    "shared/credits/limits.lua": "no script: functions that are put in front of two",
    "shared/credits/note-suspect.lua": "no script: a function that is put in front of two",
    "shared/credits/token-hold.lua": "no script: a function that is put in front of two",
    "shared/credits/unpaid-calls.lua": "no script: functions that are put in front of two",
    "shared/credits/deadline-entry.lua": "no script: functions that are put in front of two",
  };
  const silent = scripts.flatMap(({ path, text }) => {
    const header = /^(--.*\n)+/.exec(text)?.[0] ?? "";
    return ["KEYS:", "ARGV:", "Returns "].every((part) => header.includes(part)) ? [] : [path];
  });
  expect(beyond(exceptions, silent)).toEqual([]);
});

test("every migration begins with why, has its number once, and only goes forward", () => {
  const migrations = sources("shared/database/migrations/*");
  expect(migrations.filter(({ lines }) => !/^-- \w.{30,}/.test(lines[0] ?? "")).map(({ path }) => path)).toEqual([]);
  const numbers = migrations.map(({ path }) => /\/(\d{3})\.do\.[a-z-]+\.sql$/.exec(path)?.[1]);
  expect(numbers).toEqual(migrations.map((_, place) => String(place + 1).padStart(3, "0")));
});

test("statements count time in hours: a day has 23 or 25 where the clock of the session's time zone changes", () => {
  const statements = [...product, ...sources("shared/database/**/*.sql")];
  const days = /interval '\d+ (day|week)s?'|make_interval\((days|weeks) /;
  expect(places(statements, days, ({ lines }) => lines)).toEqual([]);
});

test("every source file is used by one of the programs", () => {
  const used = reachable(entries);
  const unused = [...product, ...scripts].map(({ path }) => path).filter((path) => !used.has(path));
  expect(unused).toEqual([]);
});

test("every file of the tests is used by one of them, or by a program beside them", () => {
  const config = ["vitest.config.ts", "test/harness/servers/servers.ts"]; // The second is vitest's globalSetup.
  const programs = sources(...config, "test/*/main.ts").map(({ path }) => path);
  const used = reachable([...tests.map(({ path }) => path).filter(isTest), ...programs]);
  expect(tests.map(({ path }) => path).filter((path) => !used.has(path))).toEqual([]);
});

const isTest = (path: string) => path.endsWith(".test.ts");

function reachable(from: readonly string[]): Set<string> {
  const seen = new Set<string>();
  const follow = (path: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const { target } of filesOf(path)) follow(target);
  };
  for (const path of from) follow(path);
  return seen;
}

test("no file but a program waits for something while it is loaded", () => {
  const loaded = product.filter(({ path }) => !entries.includes(path));
  expect(places(loaded, /^await\b|^(export )?const .*= await\b/)).toEqual([]);
});

const manifest = z.object({
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
});

test("every dependency is pinned to one version and used, and none is used that is not named", () => {
  const { dependencies, devDependencies } = manifest.parse(JSON.parse(readSource("package.json")));
  const pinned = Object.entries({ ...dependencies, ...devDependencies });
  expect(pinned.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);

  const tools: Record<string, string> = {
    "@biomejs/biome": "a command: the formatter",
    "@redocly/cli": "a command: lints and scores the API's document",
    "@modelcontextprotocol/conformance": "a command: the protocol's own suite",
    "@modelcontextprotocol/inspector": "a command: the protocol's own client",
    "@langchain/core": "needed by @langchain/mcp-adapters, and imported by a recipe of the documentation",
    "@langchain/langgraph": "needed by @langchain/mcp-adapters",
    "mcp-searxng": "a command: gives agents a SearXNG",
    "mcp-remote": "a command: gives Claude Desktop a remote server",
    "@types/express": "types of express",
    "@types/node": "types of Node",
    "@types/pg": "types of pg",
    node: "the Node that every npm script runs with",
    openai: "imported by a recipe of the documentation",
    "openapi-fetch": "imported by a program that a test writes",
    oxlint: "a command: the linter",
    "oxlint-tsgolint": "the part of the linter that knows types",
    pyright: "a command: checks the types of the Python client",
    typescript: "a command: the type check",
  };
  const running = packagesOf(product.filter(({ path }) => !path.startsWith("local/")));
  expect([...running].toSorted()).toEqual(Object.keys(dependencies).toSorted());
  const developing = [...packagesOf(all)].filter((name) => !running.has(name));
  expect([...developing, ...Object.keys(tools)].toSorted()).toEqual(Object.keys(devDependencies).toSorted());
});
