import { expect, test } from "vitest";
import { openSecretRemoval } from "../../../worker/raw-answers/record-raw-answers.ts";
import { readSource } from "../../harness/assertions/sources.ts";
import { engineConfig } from "../../harness/fixtures/queries.ts";

const key = "canary-key_of-20-or-more";
/** A password with every character that URLs, JSON or HTML encode. */
const password = `p"/\\&<>'%+#?=~`;

test.each([
  { as: "it is", text: key },
  { as: "a URL has it", text: `https://provider.example/?api_key=${key}&q=1` },
  { as: "JSON has it", text: JSON.stringify({ key }) },
])("a provider's key is removed from a text as $as", ({ text }) => {
  const remove = openSecretRemoval(engineConfig({ SERPAPI_API_KEY: key }));
  expect(remove(`${text} and ${text}`)).toBe(`${text} and ${text}`.replaceAll(key, "[secret]"));
});

const everyCharacter = (encode: (code: number) => string) =>
  Array.from(password, (character) => encode(character.charCodeAt(0))).join("");
const hex = (code: number) => code.toString(16).padStart(2, "0");

test.each([
  { as: "JSON", text: JSON.stringify(password).slice(1, -1) },
  { as: "JSON with escaped slashes", text: JSON.stringify(password).slice(1, -1).replaceAll("/", "\\/") },
  { as: "JSON in JSON", text: JSON.stringify(JSON.stringify(password)) },
  { as: "JSON of code points", text: everyCharacter((code) => `\\u00${hex(code)}`) },
  { as: "JSON of code points in capitals", text: everyCharacter((code) => `\\u00${hex(code).toUpperCase()}`) },
  { as: "a URL", text: encodeURIComponent(password) },
  { as: "a URL in lower case", text: everyCharacter((code) => `%${hex(code)}`) },
  { as: "HTML", text: password.replace(/[&<>]/g, (found) => ({ "&": "&amp;", "<": "&lt;" })[found] ?? "&gt;") },
  { as: "HTML of numbers", text: everyCharacter((code) => `&#${code};`) },
  { as: "HTML of hexadecimal numbers", text: everyCharacter((code) => `&#x${hex(code)};`) },
])("a password is removed in the form that $as gives it", ({ text }) => {
  const remove = openSecretRemoval(engineConfig({ DATAFORSEO_PASSWORD: password }));
  expect(remove(`before ${text} after`)).toMatch(/^before "?(\\")?\[secret\](\\")?"? after$/);
});

test("the login of Basic authentication is removed too, and the header made of both", () => {
  const login = "operator@login.example";
  const remove = openSecretRemoval(engineConfig({ DATAFORSEO_LOGIN: login, DATAFORSEO_PASSWORD: password }));
  expect(remove(`${login}: Basic ${btoa(`${login}:${password}`)}`)).toBe("[secret]: Basic [secret]");
});

test("every setting that is a credential of a provider is removed", () => {
  const [, engineSettings = ""] = /const engineSettings = ([\s\S]*?)^\}\);/m.exec(readSource("shared/config.ts")) ?? [];
  const names = [...engineSettings.matchAll(/^ {2}(\w+(?:KEY|LOGIN|PASSWORD|TOKEN|SECRET)):/gm)].map(
    ([, name]) => name,
  );
  expect(names.length).toBeGreaterThan(3);
  const settings = Object.fromEntries(names.map((name, at) => [name, `credential-of-provider-${at}`]));
  const remove = openSecretRemoval(engineConfig(settings));
  expect(remove(Object.values(settings).join(" "))).toBe(names.map(() => "[secret]").join(" "));
});

test("a long run of backslashes is searched in linear time", () => {
  const text = "\\".repeat(4e6);
  expect(openSecretRemoval(engineConfig({ SERPER_API_KEY: key }))(text)).toBe(text);
});

test("a text with all of a secret but its end is searched in linear time", () => {
  const secret = "0123456789abcdef".repeat(4);
  const text = `${secret.slice(0, -1)}… `.repeat(1_000);
  expect(openSecretRemoval(engineConfig({ SERPER_API_KEY: secret }))(text)).toBe(text);
});

test("without credentials, and around them, a text stays as it is", () => {
  const text = `{"title":"Garden pump \\u00e4 100%","link":"https:\\/\\/pumps.example\\/?a=1&amp;b=2"}`;
  expect(openSecretRemoval(engineConfig({}))(text)).toBe(text);
  expect(openSecretRemoval(engineConfig({ SERPER_API_KEY: key, SERPAPI_API_KEY: key }))(text)).toBe(text);
});
