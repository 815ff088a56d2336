import { expect, test } from "vitest";
import { aboutTheApi } from "../../api/docs/openapi-descriptions.ts";
import { openApiDocument } from "../../api/docs/openapi-document.ts";
import { landingPage } from "../../api/landing/landing.ts";
import { listTools } from "../../api/mcp/tools.ts";
import { chargingRule } from "../../api/charging-rule.ts";
import { page, pages } from "./markdown.ts";

/** What is charged, and in which order a search is checked: in the same words wherever callers and operators read it. */

const payg = {
  code: "payg",
  priceMils: 5,
  windowLimit: 1,
  windowSeconds: 1,
  concurrency: 1,
  unpaidCalls: 50,
  startingGrantMils: 0,
  operations: ["serp.search" as const],
};
// What a model reads is shorter: it needs no word about proxies and keys.
const toolsOfAgents = JSON.stringify(listTools({ plan: payg, plain: true }));
const said = {
  "README.md": page("README.md").text,
  "docs/api.md": page("docs/api.md").text,
  "the reference": JSON.stringify(openApiDocument()),
  "the page at /": landingPage("https://serp.example").toString(),
};

test.each(Object.entries(said))("%s says what is charged, in the words of all other places", (_, text) => {
  expect(text.replaceAll(/\s+/g, " ")).toContain(chargingRule);
});

test("the reference has the order of checks of docs/api.md", () => {
  const order = /The API checks in this order.*?rate window\. A refused request[^.]*\./.exec(
    page("docs/api.md").text,
  )?.[0];
  expect(aboutTheApi.replaceAll(/\s+/g, " ")).toContain(order);
});

test("no page and no description promises more", () => {
  const more =
    /(charged|paid|pays?) (only )?(once|when|if) (its|the|an|all) (answer|bytes)|charged only (once|when|if)|only answers? (are|is) (charged|paid)/i;
  const texts = { ...Object.fromEntries(pages.map(({ path, text }) => [path, text])), ...said, toolsOfAgents };
  const promising = Object.entries(texts).filter(([path, text]) => path !== "CHANGELOG.md" && more.test(text));
  expect(promising.map(([path, text]) => `${path}: ${more.exec(text)?.[0]}`)).toEqual([]);
});
