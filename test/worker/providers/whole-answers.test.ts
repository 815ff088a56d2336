import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { element } from "../../harness/assertions/element.ts";
import { madeUpAnswers, readAnswer, recordedAnswers } from "../../harness/fixtures/provider-answers.ts";
import { findLostValues } from "../../harness/omissions/lost-values.ts";
import { omissions } from "../../harness/omissions/mapping-tables.ts";
import { coverWith } from "../../harness/omissions/omissions.ts";

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
    const lost = findLostValues(JSON.parse(body), page, coverWith(omissions[provider]));
    // Those of DataForSEO's recordings have some texts in another form: docs/benchmarks.md.
    const isCounted = provider !== "dataforseo" || !isRecorded;
    expect(lost.filter(({ isLink }) => isLink || isCounted)).toEqual([]);
  });
});

test.each(pages.filter(({ isRecorded }) => !isRecorded))(
  "the made-up page of $provider has each element once, in the order of the page",
  ({ provider, page }) => {
    const types = page.elements.map(({ type }) => type).join(" ");
    const counted = types.replaceAll(/\b(\w+)( \1\b)+/g, (same, type) => `${same.split(" ").length} ${type}`);
    expect(counted).toBe(order[provider]);
  },
);
