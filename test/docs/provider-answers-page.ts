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

const asOfSerpapi =
  "lists keep their order; ads at the top, overview, answer box, panel, stories and businesses precede the organic results, other elements follow them, ads at the bottom and related searches come last";

/** The name of each provider, and the order of its elements without a rank. */
const sections: Record<HttpProviderName, { title: string; order: string }> = {
  serpapi: { title: "SerpApi", order: asOfSerpapi },
  serper: {
    title: "Serper",
    order:
      "lists keep their order; ads, answer box, panel, stories and places precede the organic results, other elements follow them, related searches come last",
  },
  searxng: { title: "SearXNG", order: "rows keep the order of Google's page; suggestions follow them" },
  dataforseo: {
    title: "DataForSEO",
    order: "items keep the order of the page; the right column follows the left one",
  },
  searchapi: { title: "SearchApi", order: asOfSerpapi },
};

/** The page of the documentation about the mapping of each provider's answer. */
export function providerAnswersPage(): string {
  const ranks = httpProviders.map(
    (provider) => `| \`${provider}\` | ${tellsRanks(provider) ? "yes" : "no"} | ${sections[provider].order} |\n`,
  );
  const tables = httpProviders.map((provider) => `\n## ${sections[provider].title}\n\n${mappingTables(provider)}\n`);
  return [introduction, ...ranks, ...tables].join("");
}
