import { describe, expect, test } from "vitest";
import { elementsOf } from "../../../harness/fixtures/dataforseo-items.ts";
import { knowledgePanel } from "../../../harness/fixtures/dataforseo-page.ts";
import { linkLines } from "../../../harness/fixtures/read-page.ts";

/** What is shown of the panels of DataForSEO. A link is written as `title | address | description`. */

describe("panels of DataForSEO", () => {
  test("an AI overview has its paragraphs as description and its references as links", () => {
    const references = [
      { source: "wiki.example", url: "https://wiki.example/pump", title: "Pump", text: "A machine." },
    ];
    const links = [{ type: "link_element", title: "there", url: "https://a.example/" }];
    const items = [
      { type: "ai_overview_element", title: "In short", text: "It pumps.", links },
      {
        type: "ai_overview_expanded_element",
        title: "Step 1",
        text: null,
        components: [
          { text: "Fill it.", references: [...references, { title: "Filling", url: "https://fill.example/" }] },
          { title: "", text: "Then close it." },
        ],
      },
      { type: "ai_overview_element", title: "Step 2:", text: "Start it\nLook!" },
      {
        type: "ai_overview_table_element",
        markdown: "| Pump |",
        table: { table_header: ["Pump", "Power", "Noise"], table_content: [["A", "900 W", "loud"]] },
      },
      {
        type: "ai_overview_video_element",
        title: "A film",
        url: "https://video.example/",
        source: "Tube",
        date: "Apr 26, 2024",
        timestamp: "2024-04-26 00:00:00 +00:00",
        snippet: "How to.",
      },
      { type: "ai_overview_element", text: null, markdown: "**Bare** [text](https://a.example/) of![](x) Markdown." },
    ];
    const [overview] = elementsOf({ type: "ai_overview", items, references, markdown: "The same." });
    expect(overview).toMatchObject({
      description:
        "In short: It pumps. Step 1: Fill it. Then close it. Step 2: Start it · Look! Bare text of Markdown.",
      richSnippet: { bottom: ["Pump · Power · Noise", "A · 900 W · loud"] },
    });
    expect(linkLines(overview)).toEqual([
      "Pump | wiki.example/pump | wiki.example · A machine.",
      "there | a.example/ | ",
      "Filling | fill.example/ | ",
      "A film | video.example/ | Tube · Apr 26, 2024 · How to.",
    ]);
  });

  test("an AI overview has no chips of its sources and no captions of videos in its text, but as links", () => {
    const card =
      "![Film](https://pictures.example/1)\n0:55[How to fill it 5K views  · 1 year ago![](https://pictures.example/2)\nTube · Pumps Inc](https://tube.example/watch?v=1)";
    const source =
      "[](https://wiki.example/pump_(tool)) [[1]](https://wiki.example/pump_(tool))[[2]](https://b.example/)";
    const items = [
      {
        text: "It pumps ( water ). wiki.example +1 It must be filled. Facebook · Pump Pals",
        markdown: `- **It pumps** (water).${source}\n- It must be [filled](https://fill.example/).[](https://pals.example/)`,
      },
      { text: "A film: 0:55 How to fill it 5K views · 1 year ago Tube · Pumps Inc", markdown: `A film:${card}` },
      { title: "In short", text: "All of the text, of which this is a part.", markdown: "## In short" },
    ].map((item) => ({ type: "ai_overview_element", ...item }));
    const references = [{ source: "wiki.example", url: "https://wiki.example/pump_(tool)", title: "Pump" }];
    const [overview] = elementsOf({ type: "ai_overview", items, references });
    expect(overview?.description).toBe(
      "It pumps (water). It must be filled. A film: In short: All of the text, of which this is a part.",
    );
    expect(linkLines(overview)).toEqual([
      "Pump | wiki.example/pump_(tool) | wiki.example",
      "How to fill it 5K views  · 1 year ago | tube.example/watch?v=1 | Tube · Pumps Inc",
    ]);
  });

  test("a button of Google's page is not a link of a knowledge panel, and another page with a bare # is one", () => {
    const urls = ["https://www.google.com/#", "https://www.google.co.in/#", "https://pumps.example/#"];
    const links = urls.map((url, at) => ({ type: "link_element", title: `More ${at}`, url }));
    const items = [{ type: "knowledge_graph_description_item", text: "A machine.", links }];
    const [panel] = elementsOf({ type: "knowledge_graph", title: "Pump", items });
    expect(linkLines(panel)).toEqual(["More 2 | pumps.example/# | "]);
  });

  test("neither a search of Google nor a copy of a picture at DataForSEO is a link of a knowledge panel", () => {
    const picture = { type: "knowledge_graph_images_element", image_url: "https://api.dataforseo.com/cdn/i/1:4" };
    const images = { type: "knowledge_graph_images_item", items: [picture] };
    const url = "https://www.google.com/search?q=Pump+Reviews";
    expect(elementsOf({ type: "knowledge_graph", title: "Pump", url, items: [images] })).toMatchObject([
      { title: "Pump", siteLinks: [] },
    ]);
  });

  test("a picture of a knowledge panel that is at Google has the text beside it as title, and not Google's host", () => {
    const picture = (url: string, domain: string, alt: string | null) => ({ url, domain, alt });
    const items = [
      picture("https://www.google.com/maps/place/Pump", "www.google.com", "Map of Pump"),
      picture("https://www.google.com/local/place/photosphere", "www.google.com", null),
      picture("https://pictures.example/1", "pictures.example", null),
    ].map((image) => ({ type: "knowledge_graph_images_element", ...image }));
    const images = { type: "knowledge_graph_images_item", items };
    const [panel] = elementsOf({ type: "knowledge_graph", title: "Pump", items: [images] });
    expect(panel?.siteLinks.map(({ title }) => title)).toEqual(["Map of Pump", "", "pictures.example"]);
  });

  test("a knowledge panel has no URL of its own; its rows are facts, and its site is its first link", () => {
    expect(elementsOf({ ...knowledgePanel, description: null })).toMatchObject([
      { description: "A pump moves water." },
    ]);
    const [panel] = elementsOf(knowledgePanel);
    expect(panel).toMatchObject({ title: "Pump", url: "", domain: "", description: "A machine." });
    expect(panel?.richSnippet).toEqual({
      top: ["Machine"],
      bottom: [
        "A pump moves water.",
        "Said to be useful.",
        "Pump · Power · Noise",
        "Born: long ago",
        "Phone: 555",
        "Ask a question",
      ],
    });
    expect(linkLines(panel)).toEqual([
      "Pump | pump.example/ | ",
      "Use | use.example/ | Of use.",
      "Wiki | wiki.example/ | ",
      "Waterfall | song.example/ | Songs · 1999",
      "Size | size.example/ | By height. · Big: 10 m; Small: 1 m · Sizes",
      "Rooms | rooms.example/ | Prices · 2026-11-05 – 2026-11-06 · £138",
      "long ago | when.example/ | ",
    ]);
  });
});
