import type { HttpProviderName } from "../harness/fixtures/made-up-answers.ts";
import { httpProviders } from "../harness/fixtures/provider-answers.ts";
import { mappingTables, tellsRanks } from "../harness/omissions/mapping-tables.ts";

const introduction = `# Mapping of provider answers

This page is for operators and callers. It shows which field of a provider's answer becomes which field of a result, and what is
left out and why.

A test writes these tables. It marks each field of an answer that has one element of every kind, and looks for the mark in the
results: \`npx vitest run test/docs/provider-answers.test.ts -u\`. Dots join the names of nested fields; lists are not
marked. If several fields become one, they are joined with \`·\`, or the first one with text counts. In the
tables of what is left out, \`*\` matches any part of a name and \`**\` any surrounding fields.

A part that no table lists becomes an element of type \`other\` with its texts and links. \`provider_unreadable_rows_total\` counts
unreadable rows.

## Ranks

| provider | reports ranks | otherwise |
| --- | --- | --- |
`;

/** The order of elements without a rank from the provider. */
const placement: Record<HttpProviderName, string> = {
  serpapi:
    "lists keep their order; ads at the top, overview, answer box, panel, stories and businesses precede the organic results, other elements follow them, ads at the bottom and related searches come last",
  serper:
    "lists keep their order; ads, answer box, panel, stories and places precede the organic results, other elements follow them, related searches come last",
  searxng: "rows keep the order of Google's page; suggestions follow them",
  searchapi:
    "lists keep their order; ads at the top, overview, answer box, panel, stories and businesses precede the organic results, other elements follow them, ads at the bottom and related searches come last",
  dataforseo: "items keep the order of the page; the right column follows the left one",
};

const names: Record<HttpProviderName, string> = {
  serpapi: "SerpApi",
  serper: "Serper",
  searxng: "SearXNG",
  dataforseo: "DataForSEO",
  searchapi: "SearchApi",
};

/** The page of the documentation about the mapping of each provider's answer. */
export function providerAnswersPage(): string {
  const ranks = httpProviders.map(
    (provider) => `| \`${provider}\` | ${tellsRanks(provider) ? "yes" : "no"} | ${placement[provider]} |\n`,
  );
  const sections = httpProviders.map((provider) => `\n## ${names[provider]}\n\n${mappingTables(provider)}\n`);
  return [introduction, ...ranks, ...sections].join("");
}
