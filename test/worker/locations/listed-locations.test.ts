import { afterAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { toListedLocation } from "../../../worker/locations/listed-location.ts";
import { removeList, storeList } from "../../../worker/locations/stored-lists.ts";
import type { Provider, ProviderQuery } from "../../../worker/providers/provider.ts";
import { openSandbox } from "../../../worker/providers/sandbox/sandbox.ts";
import { ListedLocations } from "../../../worker/locations/listed-locations.ts";
import { places } from "../../harness/fixtures/location-lists.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { openGoogle } from "../../harness/processes/google-engine.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

const deadlineMs = 20_000;
const { database } = await openFreshDatabase(afterAll);
beforeEach(() => database.query("delete from location_lists").then(() => undefined));

async function store(provider: string, names: readonly string[] = places.map(([name]) => name)): Promise<void> {
  const rows = places.filter(([name]) => names.includes(name));
  const locations = rows.flatMap(([name, countryCode, type]) => {
    return toListedLocation({ name, countryCode: countryCode ?? "", type }) ?? [];
  });
  await storeList(database, provider, { locations, onProgress: () => undefined });
}

/** The engine over providers of these names. `sent` has the location that each call sent. */
function openEngine(...names: string[]) {
  const sent: string[] = [];
  const providers = names.map((name): Provider => {
    const sandbox = openSandbox();
    const request = (asked: ProviderQuery, page: number) => {
      sent.push(`${name} ${asked.listedLocation ?? asked.location}`);
      return sandbox.request(asked, page);
    };
    return { ...sandbox, name, request };
  });
  let lookups = 0;
  const counted = new Proxy(database, {
    get: (target, property) => {
      if (property === "query") lookups += 1;
      const value = Reflect.get(target, property);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const locations = new ListedLocations(counted, names);
  const google = openGoogle({}, { providers, locations });
  onTestFinished(() => google.close());
  const search = (location: string) => google.search(query({ location }), deadlineMs);
  return { sent, locations, search, lookups: () => lookups };
}

test("a provider gets the name of the place in its own list", async () => {
  await store("dataforseo");
  const engine = openEngine("dataforseo");
  expect(await engine.search("munich, Deutschland")).toMatchObject({ ok: true });
  expect(await engine.search("London, UK")).toMatchObject({ ok: true });
  expect(engine.sent).toEqual(["dataforseo Munich,Bavaria,Germany", "dataforseo London,England,United Kingdom"]);
});

test("a region is found by its own name and by its code, and is no city of the same name", async () => {
  await store("dataforseo");
  const engine = openEngine("dataforseo");
  expect(await engine.search("35, Turkey")).toMatchObject({ details: { reason: "location_unknown" } }); // Izmir.
  for (const location of ["Bayern, Deutschland", "BY, Germany"]) await engine.search(location);
  await engine.search("München, Bayern, Deutschland");
  expect(engine.sent).toEqual([
    "dataforseo Bavaria,Germany",
    "dataforseo Bavaria,Germany",
    "dataforseo Munich,Bavaria,Germany",
  ]);
});

test("a name that several places have is rejected with all of them, and no provider is called", async () => {
  await store("dataforseo");
  const engine = openEngine("dataforseo", "sandbox");
  expect(await engine.search("Springfield, United States")).toMatchObject({
    ok: false,
    code: "query_rejected",
    details: {
      reason: "location_ambiguous",
      field: "location",
      candidates: [
        "Springfield,Illinois,United States",
        "Springfield,Missouri,United States",
        "Springfield,Oregon,United States",
      ],
    },
  });
  expect(engine.sent).toEqual([]);
});

test("each candidate can be sent as a location, and means itself", async () => {
  await store("dataforseo");
  const engine = openEngine("dataforseo");
  for (const location of ["Izmir, Konya, Turkey", "Chicago, Texas, United States", "Springfeld, United States"]) {
    const answer = await engine.search(location);
    const { candidates } = answer.ok ? {} : answer.details;
    expect(Array.isArray(candidates) && candidates.length).toBeGreaterThan(0);
    for (const candidate of Array.isArray(candidates) ? candidates : []) {
      expect(await engine.search(candidate)).toMatchObject({ ok: true });
    }
  }
  expect(new Set(engine.sent.map((sent) => sent.replace("dataforseo ", "")))).toEqual(
    new Set([
      "Izmir,Izmir,Turkiye",
      "Chicago,Illinois,United States",
      "Chicago, IL,Illinois,United States",
      "Springfield,Illinois,United States",
      "Springfield,Missouri,United States",
      "Springfield,Oregon,United States",
    ]),
  );
});

test.each([
  ["a misspelling gets similar names", "Munnich, Germany", ["Munich,Bavaria,Germany"]],
  ["a wrong region gets the name elsewhere", "Munich, Saxony, Germany", ["Munich,Bavaria,Germany"]],
  ["a postcode gets no similar one", "80332, Germany", []],
  ["a postcode beside a city gets the city", "80331 München, Germany", ["Munich,Bavaria,Germany"]],
  ["a longer name gets the place in it", "Landkreis München, Germany", ["Munich,Bavaria,Germany"]],
  ["a city of another country gets that one", "Tokyo, Germany", ["Tokyo,Japan"]],
  ["a name that is like none gets nothing", "Xqzzy, Germany", []],
])("an unknown place is rejected: %s", async (_, location, candidates) => {
  await store("dataforseo");
  expect(await openEngine("dataforseo").search(location)).toMatchObject({
    code: "query_rejected",
    details: { reason: "location_unknown", field: "location", candidates },
  });
});

test("unknown places that are sent at the same time are all refused, and each gets similar names in the end", async () => {
  await store("dataforseo");
  const engine = openEngine("dataforseo");
  const typos = ["Munnich, Germany", "Munichh, Germany", "Mumich, Germany"];
  const atOnce = await Promise.all(typos.map(engine.search));
  const details = { reason: "location_unknown", candidates: expect.any(Array) };
  expect(atOnce).toMatchObject(typos.map(() => ({ code: "query_rejected", details })));
  const candidates = ["Munich,Bavaria,Germany"];
  for (const typo of typos) await expect.poll(() => engine.search(typo)).toMatchObject({ details: { candidates } });
});

test("a provider whose list lacks the place is passed over for one whose list has it", async () => {
  await store("dataforseo", ["Munich,Bavaria,Germany"]);
  await store("serpapi");
  const engine = openEngine("dataforseo", "serpapi");
  await engine.search("Tokyo, Japan");
  expect(engine.sent).toEqual(["serpapi Tokyo,Japan"]);
});

test("a provider without a list gets the name from another list, or a known location as it was written", async () => {
  await store("dataforseo");
  const engine = openEngine("serper", "dataforseo");
  await engine.search("Munich, Germany");
  await engine.search("Moscow, Russia");
  expect(engine.sent).toEqual(["serper Munich,Bavaria,Germany", "serper Moscow,Russia"]);
});

test.each([
  ["a place that is not known", "Blah, Germany", []],
  ["a misspelled city in a known state", "Chicgo, Illinois, United States", ["Chicago,Illinois,United States"]],
  ["a misspelled city in a known region", "Munnich, Bavaria, Germany", ["Munich,Bavaria,Germany"]],
  ["a misspelled city that no list has", "Seatle, WA", ["Seattle,Washington,United States"]],
])("what no list has is not sent to a provider without a list either: %s", async (_, location, [candidate]) => {
  await store("dataforseo");
  const engine = openEngine("dataforseo", "serper");
  expect(await engine.search(location)).toMatchObject({
    code: "query_rejected",
    details: { reason: "location_unknown", candidates: candidate === undefined ? [] : { 0: candidate } },
  });
  expect(engine.sent).toEqual([]);
});

test("a place in a known area that resembles none in a list is sent to a provider without a list", async () => {
  await store("dataforseo");
  const engine = openEngine("dataforseo", "serper");
  for (const location of ["Xqzzy, Bavaria, Germany", "80332, Germany"]) await engine.search(location);
  expect(engine.sent).toEqual(["serper Xqzzy,Bavaria,Germany", "serper 80332,Germany"]);
});

test("without a stored list, known locations are sent as they were written and nothing is looked up", async () => {
  await store("dataforseo");
  const engine = openEngine("serper");
  await engine.search("Springfield, United States");
  await engine.search("munich, Germany");
  expect(engine.sent).toEqual(["serper Springfield,United States", "serper munich,Germany"]);
  expect(engine.lookups()).toBe(1);
});

test("a country alone is never looked up, and a place only once until a list changes", async () => {
  await store("dataforseo");
  const engine = openEngine("dataforseo");
  await engine.search("Germany");
  expect(engine.lookups()).toBe(0);
  for (let search = 0; search < 3; search += 1) await engine.search("Munich, Germany");
  expect(engine.lookups()).toBe(2);
  await engine.locations.reload();
  await engine.search("Munich, Germany");
  expect(engine.lookups()).toBe(3);
  await store("dataforseo");
  await engine.locations.reload();
  await engine.search("Munich, Germany");
  expect(engine.lookups()).toBe(5);
});

test("after a list was removed, locations are sent as they were written", async () => {
  await store("dataforseo");
  const engine = openEngine("dataforseo");
  await engine.search("Munich, Germany");
  await removeList(database, "dataforseo");
  await engine.locations.reload();
  await engine.search("Munich, Germany");
  expect(engine.sent).toEqual(["dataforseo Munich,Bavaria,Germany", "dataforseo Munich,Germany"]);
});

test("while Postgres does not answer, a city is not searched on a guess, and a country is searched as ever", async () => {
  const locations = { find: () => Promise.reject(new Error("connection terminated")) };
  const google = openGoogle({}, { providers: [openSandbox()], locations });
  expect(await google.search(query({ location: "Munich, Germany" }), deadlineMs)).toMatchObject({
    code: "engine_error",
    details: { reason: "provider_unavailable" },
    trace: { calls: [] },
  });
  expect(await google.search(query({ location: "Germany" }), deadlineMs)).toMatchObject({ ok: true });
  await google.close();
});
