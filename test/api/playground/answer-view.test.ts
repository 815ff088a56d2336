import { expect, test } from "vitest";
import { answerView, outcomePanel } from "../../../api/playground/playground.ts";
import { html } from "../../../api/pages/html.ts";
import { resultTypes } from "../../../shared/results.ts";

/** The answer of the playground, with what a provider may send. */

const asked = {
  query: {
    keyword: "coffee",
    engine: "google",
    location: "Munich,Germany",
    language: "German",
    device: "mobile" as const,
    depth: 10,
  },
  idempotencyKey: "form.key",
};
const bodyOf = (results: object[]) => Buffer.from(JSON.stringify({ requestId: "req_1", creditsCharged: 5, results }));
const shown = (results: object[]) => outcomePanel(answerView(bodyOf(results), asked), html``).toString();
const result = { title: "A title", url: "https://example.com/", description: "A description" };

test("each type of element is shown with its name, rank and site links", () => {
  const siteLinks = [{ ...result, title: "A part" }];
  const page = shown(resultTypes.map((type, at) => ({ ...result, type, rank: at + 1, siteLinks })));
  for (const [at, type] of resultTypes.entries()) {
    expect(page).toMatch(new RegExp(`<li class="${type}[ "]`));
    expect(page).toContain(`${type.replaceAll("_", " ")} · ${at + 1}`);
  }
  expect(page.match(/>A part</g)).toHaveLength(resultTypes.length);
});

test("a related search leads to the form with its keyword, and the place and device of this one", () => {
  const siteLinks = [{ title: "coffee & tea", url: "", description: "" }];
  const page = shown([{ ...result, type: "related_searches", rank: 1, siteLinks }]);
  const [, address = ""] = /href="(\/playground[^"]*)"/.exec(page) ?? [];
  const { searchParams } = new URL(address.replaceAll("&amp;", "&"), "http://localhost");
  expect(Object.fromEntries(searchParams)).toEqual({
    keyword: "coffee & tea",
    location: "Munich,Germany",
    language: "German",
    device: "mobile",
  });
});

test("texts of providers are escaped, and only http addresses are links", () => {
  const title = "<script>alert(1)</script>";
  const page = shown([{ ...result, title, url: "javascript:alert(1)" }]);
  expect(page).not.toContain("<script>");
  expect(page).not.toContain('href="javascript:');
});

test("instead of an answer above 256 KiB, the page has the key under which a repeat is free", () => {
  const page = shown([{ ...result, description: "x".repeat(256 * 1024) }]);
  expect(page).toContain("Idempotency-Key: form.key");
  expect(page.length).toBeLessThan(1_000);
});
