import english from "cldr-subdivisions-full/subdivisions/en/en.json" with { type: "json" };
import { iso31662 } from "iso-3166/2.js";
import { expect, test } from "vitest";
import { countryName } from "../../../shared/query/countries.ts";
import { foldName } from "../../../shared/gazetteer/fold-name.ts";
import { readLocation } from "../../../shared/query/locations.ts";
import { suggestionsFor } from "../../harness/fixtures/queries.ts";
import { subdivisionsByCode, subdivisionsByName } from "../../../shared/query/subdivisions.ts";

test.each([
  ["austin, texas", ["austin, Texas, United States"]],
  ["Austin, US-TX", ["Austin, Texas, United States"]],
  ["Austin, TX 78701", ["Austin, Texas, United States"]],
  ["Austin TX", ["Austin, Texas, United States"]],
  ["Texs", ["Texas, United States"]],
  ["Clifornia", ["California, United States"]],
  ["London, ENG", ["London, England, United Kingdom"]],
  ["London UK", ["London, United Kingdom"]],
  ["München, Bayern", ["München, Bayern, Germany"]],
  ["Munich, Bavaria", ["Munich, Bavaria, Germany"]],
  ["ile de france", ["Île-de-France, France"]],
  ["Paris, IDF", ["Paris, Île-de-France, France"]],
  ["Sofia", ["Sofia, Bulgaria"]],
  ["Toronto, ON", ["Toronto, Ontario, Canada"]],
  ["Comunidad de Madrid", ["Comunidad de Madrid, Spain"]],
  ["Córdoba Province", []],
  ["Berlin/Germany", ["Berlin, Germany"]],
  ["Hong Kong SAR", ["Hong Kong"]],
  ["Gotham City", []],
])("%s has no country and is refused with the suggestions %j", (typed, suggestions) => {
  expect(suggestionsFor(typed)).toEqual(suggestions);
});

test("a code that several countries use suggests three of them, the largest economies first", () => {
  expect(suggestionsFor("Hamlet, NB")).toEqual([
    "Hamlet, West Nusa Tenggara, Indonesia",
    "Hamlet, New Brunswick, Canada",
    "Hamlet, North Brabant, Netherlands",
  ]);
});

test("a name takes precedence over a code, and a code with its country is unambiguous", () => {
  expect(suggestionsFor("Quito, EC-A")[0]).toBe("Quito, Azuay, Ecuador");
  expect(suggestionsFor("Zou")).toEqual(["Zou, Benin"]); // `BF-ZOU` is Zoundwéogo.
  expect(suggestionsFor("AU-WA")).toEqual(["Western Australia, Australia"]);
});

const englishNames = english.subdivisions.localeDisplayNames.subdivisions;
const everySpelling = [
  ...Object.values(englishNames),
  ...iso31662.flatMap(({ code, name }) => [name, code, code.slice(3)]),
];

test("every subdivision that a refusal can suggest is accepted, in its country and as it is written", () => {
  const suggestions = new Set(
    everySpelling.map(foldName).flatMap((folded) => [...subdivisionsByName(folded), ...subdivisionsByCode(folded)]),
  );
  expect(suggestions.size).toBeGreaterThan(5_000);
  for (const suggestion of suggestions) {
    for (const location of [suggestion, `Some Town, ${suggestion}`]) expect(acceptedAs(location)).toBe(location);
  }
});

test("whatever a refusal suggests for a subdivision, misspelled or after a town, is accepted as it is written", () => {
  // A sample, because a refusal compares the text with a thousand names.
  const sample = everySpelling.filter((_, index) => index % 50 === 0);
  const typed = sample.flatMap((name) => [name, `Some Town, ${name}`, `Some Town ${name}`, `x${name}`]);
  const suggestions = new Set(typed.flatMap(suggestionsFor));
  expect(suggestions.size).toBeGreaterThan(300);
  for (const suggestion of suggestions) expect(acceptedAs(suggestion)).toBe(suggestion);
});

test("every subdivision with an English name is found by its code, in its own country", () => {
  const missing = Object.keys(englishNames)
    .map((id) => ({ code: `${id.slice(0, 2)} ${id.slice(2)}`, country: countryName(id.slice(0, 2).toUpperCase()) }))
    .filter(({ code, country }) => country !== undefined && !subdivisionsByCode(code)[0]?.endsWith(`, ${country}`));
  expect(missing).toEqual([]);
});

test("a message repeats no more than 64 characters of what was typed before the region", () => {
  const [suggestion] = suggestionsFor(`${"x".repeat(200)}, Texas`);
  expect(suggestion).toBe("Texas, United States");
  expect(suggestionsFor(`Austin, ${"x".repeat(64)} Texas`)).toEqual([]);
});

/** The canonical location, with spaces after its commas. */
function acceptedAs(typed: string): string {
  const read = readLocation(typed);
  return "problem" in read ? read.problem : read.location.replaceAll(",", ", ");
}
