import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { element } from "../../harness/assertions/element.ts";
import { madeUpAnswers, readAnswer, recordedAnswers } from "../../harness/fixtures/provider-answers.ts";
import { findLostValues } from "../../harness/omissions/lost-values.ts";
import { coveredIn } from "../../harness/omissions/omissions.ts";

/** Whole answers of each provider: made-up ones, and recorded ones if `../shared/fixtures` exists next to the checkout. */

const recorded = recordedAnswers(fileURLToPath(new URL("../../../../shared/fixtures", import.meta.url)));
const elements = z.array(element);
const answers = [...madeUpAnswers(), ...recorded].map((answer) => ({ ...answer, read: readAnswer(answer) }));
const pages = answers.flatMap(({ read, ...answer }) => ("elements" in read ? [{ ...answer, page: read }] : []));
const withoutPage = /_error_sample$|^locations$|^organic_task_post$/;

/** The types of the elements of each made-up page. */
const order = {
  serpapi:
    "paid ai_overview featured_snippet knowledge_graph shopping top_stories local_pack 10 organic people_also_ask images 2 video 2 shopping discussions 3 other paid related_searches",
  serper:
    "other paid featured_snippet knowledge_graph top_stories local_pack 10 organic people_also_ask images video shopping discussions 2 other related_searches",
  searxng: "10 organic related_searches",
  dataforseo:
    "ai_overview featured_snippet 4 answer_box paid people_also_ask knowledge_graph 2 local_pack knowledge_graph top_stories 2 video images 3 shopping 2 discussions 9 other people_also_ask other local_pack 5 other 2 related_searches 10 organic",
  searchapi:
    "paid ai_overview featured_snippet knowledge_graph top_stories local_pack 10 organic people_also_ask images video related_searches",
};

const link = (title: string, url: string, description = "") => ({ title, url, description });
const deepWell = link("Deep well", "https://www.pumps.example/deep", "For wells.");
const hoses = link("Hoses", "https://www.pumps.example/hoses");
const breadcrumb = "https://www.pumps.example › all";
/** What the first organic result of each made-up page has, in the order of a page: the fields that providers have in common. */
const common = {
  type: "organic",
  title: "Pump 1: ten of them & hoses",
  url: "https://www.pumps.example/all/1",
  domain: "pumps.example",
  breadcrumb: "",
  description: "The pump 1, and what else there is to say about it in two lines of text, as on any page.",
  siteLinks: [],
};
const firstOrganic = {
  serpapi: {
    breadcrumb,
    richSnippet: {
      top: ["4.8 (1,234)", "$99.00", "by A. Reed", "Cited by 7", "3 days ago", "3:14"],
      bottom: ["Brand: Nimbus", "Free delivery", "Power: 900 W"],
    },
    siteLinks: [
      deepWell,
      hoses,
      link("Priming", "https://www.pumps.example/video?t=13", "00:13"),
      link("Pump wins", "https://news.example/2", "News · 1 hour ago"),
    ],
  },
  serper: {
    richSnippet: { top: ["4.8 (1,234)", "3 days ago"], bottom: ["Brand: Nimbus", "Power: 900"] },
    siteLinks: [deepWell],
  },
  searxng: { richSnippet: { top: ["3 days ago"], bottom: [] } },
  dataforseo: {
    providerRank: 42,
    breadcrumb: "https://pumps.example › all",
    description: "The pump moves water.",
    richSnippet: {
      top: ["4.8 (803)", "$99.00", "3 days ago"],
      bottom: ["Brand: Nimbus", "Free delivery", "Does it rust? No."],
    },
    siteLinks: [
      link("Deep well", "https://pumps.example/deep/1", "For wells."),
      link("Sale", "https://pumps.example/sale/1"),
      link("Used pumps", "https://pumps.example/used", "As new."),
    ],
  },
  searchapi: {
    breadcrumb,
    richSnippet: { top: ["4.8 (90)", "Pump TV", "3 days ago", "3:14"], bottom: ["Free delivery"] },
    siteLinks: [hoses],
  },
};

test.each(answers)("an answer of $provider is read as a page only if it contains one: $name", ({ name, read }) => {
  expect("elements" in read).toBe(!withoutPage.test(name));
  expect("failure" in read && read.failure === "account_refused").toBe(name.endsWith("_error_sample"));
});

describe.each(pages)("a page of $provider, $name,", ({ provider, isRecorded, body, page }) => {
  test("has elements in the common form", () => {
    expect(elements.parse(page.elements)).toEqual(page.elements);
    // DataForSEO returns the whole depth at once.
    expect(page.hasMore).toBe(provider !== "dataforseo");
  });

  test("loses no text and no link", () => {
    const lost = findLostValues(JSON.parse(body), page, coveredIn(provider));
    // Those of DataForSEO's recordings have some texts in another form: docs/benchmarks.md.
    const isCounted = provider !== "dataforseo" || !isRecorded;
    expect(lost.filter(({ isLink }) => isLink || isCounted)).toEqual([]);
  });
});

describe.each(pages.filter(({ isRecorded }) => !isRecorded))("the made-up page of $provider", ({ provider, page }) => {
  test("has each element once, in the order of the page", () => {
    const types = page.elements.map(({ type }) => type).join(" ");
    const counted = types.replaceAll(/\b(\w+)( \1\b)+/g, (same, type) => `${same.split(" ").length} ${type}`);
    expect(counted).toBe(order[provider]);
  });

  test("has organic results with texts, rating, price, date, attributes and site links", () => {
    const first = page.elements.find(({ type }) => type === "organic");
    expect(first).toEqual({ ...common, ...firstOrganic[provider] });
  });
});
