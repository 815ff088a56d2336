import { describe, expect, test } from "vitest";
import { elementsOf, partsWithEveryElement } from "../../../harness/fixtures/serpapi-page.ts";

describe("an answer", () => {
  const answerOf = (answer_box: unknown) => elementsOf({ answer_box })[0];

  test("with a source is a featured snippet", () => {
    expect(elementsOf(partsWithEveryElement)[2]).toMatchObject({
      title: "Pump",
      url: "https://wiki.example/pump",
      breadcrumb: "https://wiki.example › pump",
      description: "Moves water.",
      richSnippet: { top: ["water", "2020"], bottom: [] },
    });
    expect(answerOf({ title: "Steps", list: ["Dig.", "Pump."], link: "https://a.example/" })?.description).toBe(
      "Dig. Pump.",
    );
  });

  test.each([
    ["of a calculator", { type: "calculator_result", result: "42" }, { description: "42" }],
    [
      "in short",
      { type: "organic_result", title: "Pump › Use", answer: "Water" },
      { title: "Pump › Use", description: "Water" },
    ],
    ["of a dictionary", { definitions: ["To move water.", "A shoe."] }, { description: "To move water. A shoe." }],
    [
      "of facts",
      {
        type: "weather_result",
        temperature: "96",
        unit: "Fahrenheit",
        thumbnail: "https://t.example/",
        forecast: [{ day: "Monday", weather: "Sunny", temperature: { high: "101", low: "79" } }],
      },
      {
        title: "weather result",
        richSnippet: {
          top: [],
          bottom: ["Temperature: 96", "Unit: Fahrenheit", "Monday · Sunny · Temperature: High 101, Low 79"],
        },
      },
    ],
  ])("%s, without a source, is an answer box", (_, box, fields) => {
    expect(answerOf(box)).toMatchObject({ type: "answer_box", url: "", ...fields });
  });

  test("whose only address is Google's own is an answer box", () => {
    const link = "https://www.google.com/search?q=pump+weight";
    expect(answerOf({ type: "organic_result", title: "Pump", answer: "9 kg", link })).toMatchObject({
      type: "answer_box",
      title: "Pump",
      url: link,
      description: "9 kg",
    });
  });

  test("of several, each is an element", () => {
    const boxes = [
      { title: "Pump", answer: "9 kg" },
      { title: "Hose", answer: "2 kg" },
    ];
    expect(elementsOf({ answer_box_list: boxes })).toMatchObject([
      { type: "answer_box", title: "Pump" },
      { type: "answer_box", title: "Hose" },
      { type: "organic" },
    ]);
  });
});

test("a knowledge panel has no URL of its own; its facts are below, and its site, source and lists are links", () => {
  expect(elementsOf(partsWithEveryElement)[3]).toMatchObject({
    type: "knowledge_graph",
    title: "Pump",
    url: "",
    description: "Moves water.",
    richSnippet: {
      top: ["Machine", "4.2 (10)"],
      bottom: ["Patron saint: Drogo", "Hours: Monday 9–5", "Parts: 12", "Power: 900 W, 1 kW"],
    },
    siteLinks: [
      { title: "Pump", url: "https://pumps.example/", description: "" },
      { title: "Wiki", url: "https://wiki.example/pump", description: "" },
      { title: "saints.example", url: "https://saints.example/drogo", description: "" },
      { title: "Well", url: "https://google.example/?q=well", description: "" },
    ],
  });
});
