/** The parts of an answer of SearXNG with an element of every kind. */
export const everything = {
  number_of_results: 12,
  results: [
    row({}),
    row({ template: "videos.html" }),
    row({ template: "images.html", url: null }),
    row({ template: "products.html", price: "$99" }),
    row({ template: "map.html" }),
    row({ template: "paper.html", url: undefined }),
  ],
  answers: [
    { answer: "It moves water.", url: "https://wiki.example/pump", engine: "google", template: "answer/legacy.html" },
    { answer: "42", url: null, engine: "google" },
    { translations: [{ text: "Pumpe" }, { text: "bomba" }], engine: "google", template: "answer/translations.html" },
    { current: { summary: "Rain" }, engine: "google", template: "answer/weather.html" },
  ],
  infoboxes: [
    {
      infobox: "Pump",
      content: "A machine.",
      engine: "google",
      engines: ["google"],
      attributes: [{ label: "Invented", value: "long ago" }, { label: "Image" }],
      urls: [{ title: "Wiki", url: "https://wiki.example/pump" }],
      relatedTopics: [{ name: "Things", suggestions: ["Hose"] }],
    },
  ],
  suggestions: ["pump repair", "", "pump noise", null],
  corrections: ["garden pump"],
};

/** A row that Google gave, with these parts. */
export function row(fields: object): object {
  const told = { url: "https://pumps.example/1", title: "Pumps", content: "All.", template: "default.html" };
  const found = { engine: "google", engines: ["google"], positions: [1], score: 1, category: "general" };
  return { ...told, ...found, parsed_url: ["https", "pumps.example", "/1", "", "", ""], ...fields };
}

/** An answer that holds nothing but these parts. */
export function answerWith(fields: object): object {
  const nothing = { query: "garden pump", results: [], answers: [], corrections: [], infoboxes: [], suggestions: [] };
  return { ...nothing, unresponsive_engines: [], ...fields };
}
