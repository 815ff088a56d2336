import { expect, test } from "vitest";
import { MissingSettings, type ProviderName, providerNames } from "../../shared/config.ts";
import { providerSecrets } from "../../shared/config/secret-settings.ts";
import { prices } from "../../worker/providers/prices.ts";
import { openProvider } from "../../worker/providers/registry.ts";
import { searchRequestBody } from "../../shared/query/query.ts";
import { result, resultTypes } from "../../shared/results.ts";
import { compactResult, searchResponseBody } from "../../shared/search-answer.ts";
import { readSource } from "../harness/assertions/sources.ts";
import { engineConfig } from "../harness/fixtures/queries.ts";
import { codesIn, page, tableRows } from "./markdown.ts";

/**
 * What the recipes of CONTRIBUTING.md ask for, where neither the compiler nor another test notices that it was forgotten: each
 * file that a failure names lacks the new provider, error or field.
 */

/** A file, and whether it has what the recipe asks for. */
type Places = Record<string, boolean>;

const forgotten = (places: Places) => Object.keys(places).filter((place) => !places[place]);
const mentionedIn = (text: string | undefined, word: string) => new RegExp(`\\b${word}\\b`).test(text ?? "");
const mentions = (file: string, word: string) => mentionedIn(readSource(file), word);
const fileOf = (place: string) => place.split(": ")[0] ?? "";

/** The words in backticks of one column of a table. */
const wordsIn = (path: string, firstColumn: string, column = firstColumn) =>
  tableRows(page(path), firstColumn).flatMap((row) => codesIn(row[column]));

/** The keys and logins that a provider cannot do without. */
function secretsOf(name: ProviderName): string[] {
  try {
    openProvider(name, engineConfig({}));
    return [];
  } catch (error) {
    if (!(error instanceof MissingSettings)) throw error;
    return error.names.filter((setting) => !setting.endsWith("_URL"));
  }
}

const providersPage = "docs/operating/providers.md";
const fileSecrets = /^for name in (.+); do$/m;
const passwordsLoop = readSource("deploy/passwords.sh").match(new RegExp(fileSecrets, "gm"))?.at(-1) ?? "";

function placesOfSecret(name: string): Places {
  const compose = readSource("docker-compose.yml");
  return {
    "shared/config/secret-settings.ts: providerSecrets": providerSecrets.some((secret) => secret === name),
    "docker-compose.yml: secrets": compose.includes(`\n  ${name}: { file: `),
    "docker-compose.yml: secrets of the worker": new RegExp(`secrets: \\[.*\\b${name}\\b.*\\]`).test(compose),
    "docker-compose.yml: x-no-provider-keys": compose.includes(`\n  ${name}: ""\n  ${name}_FILE: ""\n`),
    "deploy/quick.yml: environment of the worker": readSource("deploy/quick.yml").includes(
      `\n      ${name}: \${${name}:-}\n`,
    ),
    "deploy/passwords.sh: keys from others": passwordsLoop.split(/[ ;]/).includes(name),
    "deploy/helm/templates/_pods.tpl: secrets of a component": readSource("deploy/helm/templates/_pods.tpl").includes(
      `\n${name}: ${name}\n`,
    ),
    "docs/operating/kubernetes.md: table of the Secret": wordsIn("docs/operating/kubernetes.md", "key").includes(name),
    "docs/operating/secrets.md: table of the files": wordsIn("docs/operating/secrets.md", "file").includes(name),
  };
}

function placesOfProvider(name: ProviderName): Places {
  const price = prices[name];
  const isPriced = price !== undefined && price.firstPageMicroUsd > 0;
  const setting = tableRows(page("docs/operating/configuration.md"), "name").find((row) =>
    codesIn(row.name).includes("SERP_PROVIDERS"),
  );
  return {
    ".env.example: comment of SERP_PROVIDERS": new RegExp(`A comma list of: .*\\b${name}\\b`).test(
      readSource(".env.example"),
    ),
    "docs/operating/configuration.md: SERP_PROVIDERS": codesIn(setting?.meaning).includes(name),
    "README.md: providers": new RegExp(`\\b${name}`, "i").test(readSource("README.md")),
    [`${providersPage}: first table`]: wordsIn(providersPage, "name").includes(name),
    [`${providersPage}: simultaneous calls`]: wordsIn(providersPage, "provider").includes(name),
    [`${providersPage}: prices and margin`]: !isPriced || wordsIn(providersPage, "priced at").includes(name),
    ...Object.assign({}, ...secretsOf(name).map(placesOfSecret)),
  };
}

test.each(providerNames)("the provider %s is in every place that the recipe names", (name) => {
  expect(forgotten(placesOfProvider(name))).toEqual([]);
});

const placesOfType = (type: string): Places => ({
  "docs/api.md: the types of result": codesIn(tableRows(page("docs/api.md"), "key")[0]?.notes).includes(type),
  "worker/providers/sandbox/sandbox.ts: an element": mentions("worker/providers/sandbox/sandbox.ts", type),
  "docs/operating/provider-answers.md: a provider that has it": readSource(
    "docs/operating/provider-answers.md",
  ).includes(`| \`${type}\` |`),
});

test.each(resultTypes)("the type of result %s is in every place that the recipe names", (type) => {
  expect(forgotten(placesOfType(type))).toEqual([]);
});

const placesOfField = (name: string): Places => ({
  "worker/providers/build-element.ts: a value": name === "rank" || mentions("worker/providers/build-element.ts", name),
  "api/billing/searches/answer-view.ts: as people see it":
    name === "domain" || mentions("api/billing/searches/answer-view.ts", name),
});

test.each(Object.keys(result.shape))("the field %s of a result is in every place that the recipe names", (name) => {
  expect(forgotten(placesOfField(name))).toEqual([]);
});

/** The fields that the engine does not search by. */
const answerFields = new Set(["targetDomain", "types", "format", "maxAgeSeconds", "include"]);

function placesOfRequestField(name: string): Places {
  const documented = tableRows(page("docs/api.md"), "field").filter((row) => "default" in row);
  const [, searchedPart = ""] = readSource("shared/query/query.ts").split("export function searchedPart(");
  const places: Places = {
    "docs/api.md: the fields of a request": documented.flatMap((row) => codesIn(row.field)).includes(name),
    "shared/query/query.ts: searchedPart": answerFields.has(name) || mentionedIn(searchedPart.split("\n}\n")[0], name),
  };
  // There is one engine.
  if (answerFields.has(name) || name === "engine") return places;
  const column = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const migrations = "shared/database/migrations";
  places[`${migrations}/006.do.search-log.sql: ${column}`] = mentions(`${migrations}/006.do.search-log.sql`, column);
  const compared = readSource(`${migrations}/013.do.kept-answers.sql`).includes(`s.${column}`);
  places[`${migrations}/013.do.kept-answers.sql: previous_answer()`] = compared;
  for (const file of [
    "shared/search-log/search-log.ts",
    "shared/search-log/read-search-log.ts",
    "commands/erasure/export-organization.ts",
    "api/billing/searches/answer-view.ts",
    "commands/search.ts",
    "api/playground/search-form.ts",
    "api/playground/playground.js",
  ])
    places[`${file}: a field of a query`] = mentions(file, name);
  return places;
}

test.each(Object.keys(searchRequestBody.shape))(
  "the field %s of a request is in every place that the recipe names",
  (name) => {
    expect(forgotten(placesOfRequestField(name))).toEqual([]);
  },
);

test("docs/api.md has each field of an answer, each key of a short result, and exactly the keys of a result", () => {
  expect(
    wordsIn("docs/api.md", "field")
      .filter((word) => word in searchResponseBody.shape)
      .toSorted(),
  ).toEqual(Object.keys(searchResponseBody.shape).toSorted());
  expect(wordsIn("docs/api.md", "key").toSorted()).toEqual(Object.keys(result.shape).toSorted());
  const [, compact = ""] = page("docs/api.md").prose.split("### Compact format\n");
  for (const key of Object.keys(compactResult.shape)) expect(codesIn(compact.split("\n## ")[0])).toContain(key);
});

test.each([
  ["Add a search provider", placesOfProvider("dataforseo")],
  ["Add a field of a request", placesOfRequestField("device")],
  ["Add a type or a field of a result", { ...placesOfType("organic"), ...placesOfField("title") }],
])("the recipe %j names every file that is checked here", (title, places) => {
  const [, recipe = ""] = page("CONTRIBUTING.md").prose.split(`\n## ${title}\n`);
  const named = recipe.split("\n## ")[0] ?? "";
  expect([...new Set(Object.keys(places).map(fileOf))].filter((file) => !named.includes(file))).toEqual([]);
});
