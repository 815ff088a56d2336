import { describe, expect, test } from "vitest";
import { resultTypesByItemType } from "../../../../worker/providers/dataforseo/elements.ts";
import { element } from "../../../harness/assertions/element.ts";
import { groups } from "../../../harness/fixtures/dataforseo-groups.ts";
import { elementsOf } from "../../../harness/fixtures/dataforseo-items.ts";
import { itemsOfEveryType, questions } from "../../../harness/fixtures/dataforseo-page.ts";
import { linkLines } from "../../../harness/fixtures/read-page.ts";

describe("elements of DataForSEO", () => {
  test.each([...resultTypesByItemType, ["__proto__", "other"], ["invented_tomorrow", "other"]])(
    "an item of type %s becomes %s, even without other fields",
    (type, ours) => {
      const bare = { type, title: null, url: "https://pumps.example/" };
      const [found, ...more] = elementsOf(bare);
      expect(more).toEqual([]);
      expect(element.parse(found)).toMatchObject({ type: ours, title: ours === "other" ? type : "" });
    },
  );

  test("an element of no known type that shows nothing is left out, and one of a known type has its rank", () => {
    const items = [
      { type: "google_posts", posts_id: "abc", cid: "1", feature: "0x1:0x2", rank_absolute: 1 },
      { type: "ai_overview", asynchronous_ai_overview: true, items: null, rank_absolute: 2 },
      { type: "invented_tomorrow", items: [{ title: "A chip" }], rank_absolute: 3 },
    ];
    expect(elementsOf(...items).map(({ type, title, providerRank }) => [type, title, providerRank])).toEqual([
      ["ai_overview", "", 2],
      ["other", "invented_tomorrow", 3],
    ]);
  });

  test("the right column follows the left one and has no rank, although DataForSEO ranks it from 1 again", () => {
    const items = [
      { type: "knowledge_graph", title: "Panel", position: "right", rank_absolute: 1 },
      { type: "organic", title: "Second", url: "https://b.example/", position: "left", rank_absolute: 4 },
      { type: "organic", title: "First", url: "https://a.example/", position: "left", rank_absolute: 1 },
      { type: "google_reviews", rating: { value: 4.9, votes_count: 142 }, position: "right", rank_absolute: 2 },
    ];
    expect(elementsOf(...items).map(({ type, title, providerRank }) => [type, title, providerRank])).toEqual([
      ["organic", "First", 1],
      ["organic", "Second", 4],
      ["knowledge_graph", "Panel", undefined],
      ["knowledge_graph", "", undefined],
    ]);
  });

  test("a carousel of short videos is an element of videos", () => {
    const items = [{ type: "carousel_element", title: "Priming" }];
    const types = ["Short videos", "Pumps"].map((title) => elementsOf({ type: "carousel", title, items })[0]?.type);
    expect(types).toEqual(["video", "other"]);
  });

  test("a grouped element has its members as links, described by their answer or source", () => {
    const lacking = [
      { type: "images", items: [{ type: "images_element", url: null, image_url: "https://img.example/1.png" }] },
      { type: "people_also_ask", items: [{ title: "Why not?", url: "https://ai.example/", expanded_element: null }] },
    ];
    const links = [questions, ...groups, ...lacking].flatMap((item) =>
      elementsOf(item).flatMap((found) => linkLines(found).map((line) => `${found.type} | ${line}`)),
    );
    expect(links).toEqual([
      "people_also_ask | Which pump? | faq.example/1 | A small one · Small gardens need small pumps. · Kind: Lift; Deep well: 60 m · Frequent questions · 2025-03-04",
      "people_also_ask | Why a pump? | wiki.example/pump | In short: A pump lifts water. Further: Costs: From $99. · Kind: Lift; Deep well: 60 m",
      "top_stories | Pump wins | news.example/1 | News · 2 hours ago",
      "video | Pumping | video.example/1 | Tube · 2026-09-11",
      "video | Pump in a minute | short.example/1 | Tube · Ann",
      "images | A pump | img.example/1 | ",
      "shopping | Pump 900 | shop.example/9 | $90 · Shop · 4.8 (803)",
      "shopping | Pump 800 |  | $80+ · Seller · 4.8 (803) · Shop, 10+",
      "shopping | Pump tour | tour.example/1 | $43 · Tours · 4.8 (803)",
      "discussions | Loud pump? | forum.example/1 | Forum · 2022-08-14 · posts: 64",
      "discussions | My pump | blog.example/1 | Bea · 13 hours ago · It runs.",
      "other | Old pump |  | of brass",
      "other | New pump! | tweet.example/1 | 6 hours ago",
      "other | Pumpkin soup | soup.example/ | Soups · 30 min · 4.8 (803) · Pumpkin, cream",
      "other | Pump fitter | job.example/1 | via Jobs · Oslo · Full-time · 30 an hour · 1 month ago · In town",
      "other | Pump fair | fair.example/ | Saturday, 19:00",
      "other | Pump Inn | inn.example/ | $198 · 4.8 (803) · 13% off",
      "other | Pump house | sight.example/ | 4.8 (803) · Old works",
      "other | On pumps | paper.example/1 | Cleo · Cited by 462",
      "other | Pump talk | pod.example/1 | 49m · Of valves",
      "people_also_ask | Is it loud? | qa.example/1 | Hardly. · Answers · votes: 170",
      "other | Pumps in lists | list.example/ | Lists",
      "local_pack | Dan the plumber | dan.example/ | 4.8 (803) · 20 years in business",
      "other | Pump school | school.example/ | School · Free · 3 hours",
      "other | Nimbus |  | By brand · nimbus pump",
      "other | Fly from $10 | fly.example/ | ",
      "other | Pump App | app.example/ | $3.99",
      "other | Pump 1 | review.example/1 | 92% (46) · Best. · Review 1",
      "related_searches | pump repair |  | ",
      "related_searches | pump noise |  | ",
      "images |  | img.example/1.png | ",
      "people_also_ask | Why not? | ai.example/ | ",
    ]);
  });

  test("consecutive businesses become one local pack; a new pack begins after another item", () => {
    const business = (title: string) => {
      return { type: "local_pack", title, description: "1 Main St", phone: "555", cid: "1" };
    };
    const items = [business("A"), business("B"), { type: "map", title: "Here" }, business("C")];
    expect(elementsOf(...items).map(({ type, title, siteLinks }) => [type, title, siteLinks.length])).toEqual([
      ["local_pack", "", 2],
      ["local_pack", "Here", 0],
      ["local_pack", "", 1],
    ]);
    expect(linkLines(elementsOf(business("A"))[0])).toEqual(["A |  | 555 · 1 Main St"]);
  });

  test("an answer box has its answer as description", () => {
    const found = elementsOf(...itemsOfEveryType).filter(({ type }) => /^(answer_box|featured_snippet)$/.test(type));
    expect(
      found.map(({ title, description, richSnippet: { top, bottom } }) => [title, description, top, bottom]),
    ).toEqual([
      ["Pump", "Lifts water.", ["60 m", "2026-09-11"], ["Kind: Lift", "Deep well: 60 m"]],
      ["", "Thursday · October 31", [], []],
      ["3x = 6", "x = 2", [], ["Division", "Divide by 3: x = 6 / 3"]],
      ["1 Euro", "1.05519 US Dollar", [], ["2 2.10"]],
      ["Pump Inc", "+3.1", ["579.21 USD", "PUMP"], ["Mkt cap: 549B", "a · b · c", "d"]],
    ]);
  });

  test("an element has the rank that DataForSEO tells, a local pack that of its first business; 0 is none", () => {
    const types = ["ai_overview", "local_pack", "local_pack", "images"];
    const items = types.map((type, at) => ({ type, title: "a", rank_absolute: at === 3 ? 7 : at + 2 }));
    expect(elementsOf(...items).map(({ type, providerRank }) => [type, providerRank])).toEqual([
      ["ai_overview", 2],
      ["local_pack", 3],
      ["images", 7],
    ]);
    for (const rank_absolute of [0, -1, 1.5, "2", null]) {
      for (const type of ["local_pack", "images"]) {
        expect(elementsOf({ type, rank_absolute })[0]).not.toHaveProperty("providerRank");
      }
    }
  });

  test("items are sorted by absolute rank if every item has a distinct one", () => {
    const at = (...ranks: unknown[]) =>
      elementsOf(...ranks.map((rank_absolute) => ({ type: "x", title: String(rank_absolute), rank_absolute })));
    expect(at(3, 1, 2).map(({ title }) => title)).toEqual(["1", "2", "3"]);
    expect(at(3, 1, 1).map(({ title }) => title)).toEqual(["3", "1", "1"]);
    expect(at(3, 0, 1).map(({ title }) => title)).toEqual(["3", "0", "1"]);
    expect(at(3, null, "1").map(({ title }) => title)).toEqual(["3", "null", "1"]);
  });
});
