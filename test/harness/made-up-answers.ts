import type { ProviderName } from "../../shared/config.ts";
import { everyPart, grouped, panel } from "./dataforseo-items.ts";
import { answerWith, everything as ofSearxng, row } from "./searxng-page.ts";
import { everything as ofSerpapi, success } from "./serpapi-page.ts";
import { everything as ofSerper } from "./serper-page.ts";

/** Whoever answers with a page; the sandbox answers with what a page grows from. */
export type AskedProvider = Exclude<ProviderName, "sandbox">;

const organicRows = 10;
const link = { title: "Deep well", link: "https://www.pumps.example/deep", snippet: "For wells." };
const attributes = { Brand: "Nimbus", Power: 900 };
const rated = {
  extensions: ["Rating: 4.8", "1,234 votes", "$99.00"],
  detected_extensions: { rating: 4.8, votes: 1_234 },
};
const texts = (number: number) => ({
  title: `Pump ${number}: ten of them &amp; hoses`,
  snippet: `The <b>pump</b> ${number}, and what else there is to say about it in two lines of text, as on any page.`,
  date: "3 days ago",
});
const address = (number: number) => ({ link: `https://www.pumps.example/all/${number}` });

/** Of each provider a full page: ten organic results with all that one can have, and an element of every kind. */
export const madeUp: Record<AskedProvider, unknown> = {
  serpapi: {
    ...ofSerpapi,
    search_metadata: success,
    search_information: { total_results: 1_200 },
    organic_results: tenTimes((number) => ({
      position: number,
      ...texts(number),
      ...address(number),
      displayed_link: "https://www.pumps.example › all",
      rich_snippet: { top: rated, bottom: { extensions: ["Brand: Nimbus", "Free delivery"] } },
      sitelinks: { expanded: [link] },
    })),
  },
  serper: {
    ...ofSerper,
    organic: tenTimes((number) => ({
      ...texts(number),
      ...address(number),
      position: number,
      rating: 4.8,
      ratingCount: 1_234,
      attributes,
      sitelinks: [link],
    })),
  },
  searxng: answerWith({
    ...ofSearxng,
    results: [
      ...ofSearxng.results,
      ...tenTimes((number) =>
        row({
          title: texts(number).title,
          url: address(number).link,
          content: `3 days ago — ${texts(number).snippet}`,
          author: "Ann",
          positions: [number],
        }),
      ),
    ],
  }),
  dataforseo: {
    status_code: 20_000,
    tasks: [
      {
        status_code: 20_000,
        cost: 0.002,
        result: [
          {
            se_results_count: 1_200,
            items: [
              ...tenTimes((number) => ({ ...everyPart(), title: texts(number).title, rank_absolute: null })),
              panel,
              ...grouped,
            ],
          },
        ],
      },
    ],
  },
};

function tenTimes(made: (number: number) => object): object[] {
  return Array.from({ length: organicRows }, (_, index) => made(index + 1));
}
