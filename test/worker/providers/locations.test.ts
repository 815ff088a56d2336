import { describe, expect, test } from "vitest";
import type { Provider } from "../../../worker/providers/provider.ts";
import { openProvider } from "../../../worker/providers/registry.ts";
import { dataForSeoList, places, serpapiList } from "../../harness/fixtures/location-lists.ts";
import { engineConfig, query } from "../../harness/fixtures/queries.ts";
import { contractCases } from "./contract-cases.ts";

function open(name: "dataforseo" | "serpapi" | "serper"): Provider {
  return openProvider(name, engineConfig(contractCases[name].settings));
}

const read = (name: "dataforseo" | "serpapi", status: number, body: unknown) =>
  open(name).locations?.read({ status, headers: {}, body: typeof body === "string" ? body : JSON.stringify(body) });

const rows = places.map(([name, countryCode, type]) => ({ name, countryCode: countryCode ?? "", type }));

test("the whole list is fetched from where the provider publishes it", () => {
  expect(open("dataforseo").locations?.request).toMatchObject({
    url: "https://provider.example/base/v3/serp/google/locations",
  });
  expect(open("serpapi").locations?.request).toMatchObject({
    url: "https://provider.example/base/locations.json",
  });
  expect(open("serper").locations).toBeUndefined();
});

test("a list that needs no key is fetched without it", () => {
  expect(JSON.stringify(open("serpapi").locations?.request)).not.toContain("secret");
});

test("every row of a list is read", () => {
  expect(read("dataforseo", 200, dataForSeoList(places))).toEqual(rows);
  expect(read("serpapi", 200, serpapiList(places))).toEqual(rows);
});

test("one odd row is dropped; a list of odd rows has changed its format and is refused", () => {
  const list = serpapiList();
  expect(read("serpapi", 200, [...list, { canonical_name: null }])).toHaveLength(list.length);
  expect(read("serpapi", 200, [...list, ...Array.from({ length: 20 }, () => "x")])).toEqual({ failure: "unreadable" });
});

describe("a list is refused", () => {
  test.each([
    ["that has fewer rows than it says", dataForSeoList(places, { result_count: places.length + 1 })],
    ["without a number of rows", dataForSeoList(places, { result_count: null })],
    ["without rows", dataForSeoList(places, { result: null })],
    ["that is cut off", JSON.stringify(dataForSeoList()).slice(0, -100)],
    ["that is HTML", "<html>"],
    ["that is a number", "1"],
  ])("of dataforseo %s", (_, body) => {
    expect(read("dataforseo", 200, body)).toEqual({ failure: "unreadable" });
  });

  test.each([
    ["that is cut off", JSON.stringify(serpapiList()).slice(0, -100)],
    ["that is an object", { __proto__: [], locations: serpapiList() }],
    ["that is HTML", "<html>"],
  ])("of serpapi %s", (_, body) => {
    expect(read("serpapi", 200, body)).toEqual({ failure: "unreadable" });
  });
});

test.each([
  ["dataforseo", 200, { status_code: 40_100, status_message: "", tasks: null }, "account_refused"],
  ["dataforseo", 200, dataForSeoList(places, { status_code: 50_000 }), "unavailable"],
  ["dataforseo", 502, "<html>", "unavailable"],
  ["serpapi", 401, "{}", "account_refused"],
  ["serpapi", 429, "{}", "rate_limited"],
  ["serpapi", 503, "", "unavailable"],
  ["serpapi", 404, "", "request_refused"],
  ["serpapi", 204, "", "unreadable"],
] as const)("%s: an answer with status %d is the failure that it means", (provider, status, body, failure) => {
  expect(read(provider, status, body)).toEqual({ failure });
});

test("the name in the list goes to the provider as it is; without one, the location of the query as Google spells it", () => {
  const izmir = query({ location: "Izmir, Turkey" });
  const listed = { ...izmir, listedLocation: "Munich,Bavaria,Germany" };
  const sent = (name: "dataforseo" | "serpapi" | "serper") =>
    [izmir, listed].map((each) => {
      const { url, body } = open(name).request(each, 1);
      if (name === "serpapi") return new URL(url).searchParams.get("location");
      const { location, location_name = location } = [JSON.parse(body)].flat()[0];
      return location_name;
    });
  for (const name of ["dataforseo", "serpapi", "serper"] as const) {
    expect(sent(name)).toEqual(["Izmir,Turkiye", "Munich,Bavaria,Germany"]);
  }
});
