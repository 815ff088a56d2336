import type { HttpProviderName } from "../harness/fixtures/made-up-answers.ts";
import { httpProviders } from "../harness/fixtures/provider-answers.ts";
import { mappingTables, tellsRanks } from "../harness/omissions/mapping-tables.ts";

const introduction = `# What each provider's answer becomes

This page is for operators and callers who want to know where a field of a result comes from, and what of a provider's answer is
left out and why.

The tables are written by a test that marks each field of an answer with one element of every kind and looks for the mark in the
results: \`npx vitest run test/docs/provider-answers.test.ts -u\`. Names of fields within fields are joined with dots, and lists are not
marked. Where several fields become one, they are joined with \`·\`, or the first of them that has a text counts. In the
tables of what is left out, \`*\` stands for any part of a name and \`**\` for any fields around it.

A part that no table has becomes an element of type \`other\` with its texts and links. Rows that cannot be read are counted in
\`provider_unreadable_rows_total\`.

## Ranks

| provider | tells ranks | otherwise |
| --- | --- | --- |
`;

/** How the elements are ordered whose place the provider does not tell. */
const placement: Record<HttpProviderName, string> = {
  serpapi:
    "the order of the lists is kept; ads at the top, overview, answer box, panel, stories and businesses come before the organic results, the other elements after them, ads at the bottom and related searches last",
  serper:
    "the order of the lists is kept; ads, answer box, panel, stories and places come before the organic results, the other elements after them, related searches last",
  searxng:
    "rows are ordered by the position on Google's page; answers and panels come before them, suggestions after them",
  dataforseo: "the order of the items is the order of the page",
};

const names: Record<HttpProviderName, string> = {
  serpapi: "SerpApi",
  serper: "Serper",
  searxng: "SearXNG",
  dataforseo: "DataForSEO",
};

/** The page of the documentation that says what becomes of the answers of each provider. */
export function providerAnswersPage(): string {
  const ranks = httpProviders.map(
    (provider) => `| \`${provider}\` | ${tellsRanks(provider) ? "yes" : "no"} | ${placement[provider]} |\n`,
  );
  const sections = httpProviders.map((provider) => `\n## ${names[provider]}\n\n${mappingTables(provider)}\n`);
  return [introduction, ...ranks, ...sections].join("");
}
