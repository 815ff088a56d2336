import { expect, test } from "vitest";
import { toListedLocation } from "../../../worker/locations/listed-location.ts";
import { matchLocation, toTypedLocation } from "../../../worker/locations/find-location.ts";
import { cpuMsOf } from "../../harness/assertions/cpu-time.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { countryOf } from "../../../shared/query/locations.ts";
import { places } from "../../harness/fixtures/location-lists.ts";

const rows = places.flatMap(([name, countryCode, type]) => {
  return toListedLocation({ name, countryCode: countryCode ?? "", type }) ?? [];
});

/** What a location means among the places, as a caller writes it. */
function meaningsOf(written: string): string[] {
  const { location } = query({ location: written });
  const countryCode = countryOf(location);
  const typed = toTypedLocation(location);
  const namesakes = rows.filter(
    (row) => row.countryCode === countryCode && row.folded.split(",")[0] === typed.parts[0],
  );
  return matchLocation(typed, namesakes).map(({ name }) => name);
}

test.each([
  ["munich, Germany", "Munich,Bavaria,Germany"],
  ["MUNICH, Bavaria, Deutschland", "Munich,Bavaria,Germany"],
  ["Munich, BY, Germany", "Munich,Bavaria,Germany"],
  ["Munich, Bayern, Germany", "Munich,Bavaria,Germany"],
  ["London, United Kingdom", "London,England,United Kingdom"],
  ["İzmir, Turkey", "Izmir,Izmir,Turkiye"],
  ["St. Étienne, France", "Saint-Etienne,Auvergne-Rhone-Alpes,France"],
  ["Springfield, MO, USA", "Springfield,Missouri,United States"],
  ["New York, N.Y., USA", "New York,New York,United States"],
  ["Tōkyō, Japan", "Tokyo,Japan"],
])("%s is the only place of that name, %s", (written, listed) => {
  expect(meaningsOf(written)).toEqual([listed]);
});

test.each([
  ["New York, United States", "New York,United States"],
  ["New York, New York, United States", "New York,New York,United States"],
  ["Berlin, Germany", "Berlin,Germany"],
])("the full name of a location means that one, although a longer name has it too: %s", (written, listed) => {
  expect(meaningsOf(written)).toEqual([listed]);
});

test("a name that several places of the country have means none of them", () => {
  expect(meaningsOf("Springfield, United States")).toEqual([
    "Springfield,Illinois,United States",
    "Springfield,Missouri,United States",
    "Springfield,Oregon,United States",
  ]);
});

test("an advertising market is meant only by its full name", () => {
  expect(meaningsOf("Chicago, United States")).toEqual(["Chicago,Illinois,United States"]);
  expect(meaningsOf("Chicago, IL, Illinois, United States")).toEqual(["Chicago, IL,Illinois,United States"]);
});

test.each([
  "Munich, Hesse, Germany",
  "Munich, Hessen, Germany",
  "Munich, Japan",
  "Illinois, Springfield, United States",
  "Nowhere, Germany",
])("a place that is not listed like that means nothing: %s", (written) => {
  expect(meaningsOf(written)).toEqual([]);
});

test("names that differ in accents alone differ by their spelling", () => {
  const twins = ["Malaga,Spain", "Málaga,Spain"].map((name) => ({ name, folded: "malaga", isMarket: false }));
  const typed = (text: string) => toTypedLocation(`${text},Spain`);
  expect(matchLocation(typed("Málaga"), twins)).toEqual(twins.slice(1));
  expect(matchLocation(typed("MALAGA"), twins)).toEqual(twins);
});

test.each([
  ["Łódź,Łódź Voivodeship,Poland", "lodz,lodz voivodeship"],
  ["Tromsø,Troms,Norway", "tromso,troms"],
  ["Gießen,Hesse,Germany", "giessen,hesse"],
  ["Saint-Denis,Reunion", "st denis"],
  ["Sainte-Anne,Guadeloupe", "ste anne"],
  ["Austin, TX,Texas,United States", "austin,tx,texas"],
])("%s is found as %s", (name, folded) => {
  expect(toListedLocation({ name, countryCode: "XX", type: "City" })).toMatchObject({ name, folded });
});

test.each([
  ["a country", { name: "Germany", countryCode: "DE", type: "Country" }],
  ["a name without a country", { name: "Munich", countryCode: "DE", type: "City" }],
  ["a name with an empty part", { name: "Munich,,Germany", countryCode: "DE", type: "City" }],
  ["a name of signs", { name: "--,Germany", countryCode: "DE", type: "City" }],
  ["a place without a country code", { name: "Munich,Germany", countryCode: "", type: "City" }],
  ["a country code that is none", { name: "Munich,Germany", countryCode: "de'", type: "City" }],
  ["a control character", { name: "Mun\u0000ich,Germany", countryCode: "DE", type: "City" }],
  ["a bidirectional override", { name: "Mun\u202eich,Germany", countryCode: "DE", type: "City" }],
  ["a lone surrogate", { name: "Mun\ud800ich,Germany", countryCode: "DE", type: "City" }],
  ["a name that no caller can send", { name: `${"M".repeat(250)},Germany`, countryCode: "DE", type: "City" }],
])("a row of a list is dropped if it is %s", (_, row) => {
  expect(toListedLocation(row)).toBeUndefined();
});

test("many regions of a location are found once, and not for each other name of its city in each list", () => {
  // `Z` is the code of a region. Jerusalem has 228 names: this many comparisons are 73 look-ups in three lists.
  const typed = toTypedLocation(`Jerusalem,${"Z,".repeat(120)}Israel`);
  const compare = () => {
    for (let comparison = 0; comparison < 50_000; comparison += 1) matchLocation(typed, []);
  };
  expect(cpuMsOf(compare)).toBeLessThan(3_000);
});
