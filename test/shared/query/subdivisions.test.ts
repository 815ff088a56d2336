import english from "cldr-subdivisions-full/subdivisions/en/en.json" with { type: "json" };
import { iso31662 } from "iso-3166/2.js";
import { expect, test } from "vitest";
import { countryName } from "../../../shared/query/countries.ts";
import { readLocation } from "../../../shared/query/locations.ts";
import { subdivisionsByCode } from "../../../shared/query/subdivisions.ts";

test.each([
  ["Austin, TX", ["Austin, Texas, United States"]],
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
  ["Buffalo, N.Y.", ["Buffalo, New York, United States", "Buffalo, Nyíregyháza, Hungary"]],
  ["Comunidad de Madrid", ["Comunidad de Madrid, Spain"]],
  ["Toledo", ["Toledo, Spain", "Toledo, Belize"]],
  ["Washington D.C.", ["Washington DC, United States"]],
  ["Berlin/Germany", ["Berlin, Germany"]],
  ["Hong Kong SAR", ["Hong Kong"]],
  ["Gotham City", []],
])("%s is no place with a country, but close to %j", (typed, close) => {
  expect(suggestionsFor(typed)).toEqual(close);
});

test("a code in several countries is answered with three of them, the largest economies first", () => {
  expect(suggestionsFor("Perth, WA")).toEqual([
    "Perth, Washington, United States",
    "Perth, Western Australia, Australia",
    "Perth, Wasit, Iraq",
  ]);
});

test("a name comes before a code, and a code with its country leaves no doubt", () => {
  expect(suggestionsFor("Quito, EC-A")[0]).toBe("Quito, Azuay, Ecuador");
  expect(suggestionsFor("Zou")).toEqual(["Zou, Benin"]); // `BF-ZOU` is Zoundwéogo.
  expect(suggestionsFor("AU-WA")).toEqual(["Western Australia, Australia"]);
});

test("whatever is suggested for any subdivision of any country is taken, in that country and as it was written", () => {
  const names = Object.values(english.subdivisions.localeDisplayNames.subdivisions);
  const typed = [
    ...names,
    ...iso31662.flatMap(({ code, name }) => [name, code, code.slice(3)]),
    ...iso31662.map(({ name }) => `x${name}`),
  ].flatMap((name) => [name, `Some Town, ${name}`, `Some Town ${name}`]);
  const suggestions = new Set(typed.flatMap(suggestionsFor));
  expect(suggestions.size).toBeGreaterThan(10_000);
  for (const suggestion of suggestions) {
    const parts = suggestion.split(", ");
    expect(readLocation(suggestion)).toMatchObject({ location: parts.join(",") });
  }
});

test("every subdivision that has an English name is found by its code, in its own country", () => {
  const ids = Object.keys(english.subdivisions.localeDisplayNames.subdivisions);
  const lost = ids
    .map((id) => ({ code: `${id.slice(0, 2)} ${id.slice(2)}`, country: countryName(id.slice(0, 2).toUpperCase()) }))
    .filter(({ code, country }) => country !== undefined && !subdivisionsByCode(code)[0]?.endsWith(`, ${country}`));
  expect(lost).toEqual([]);
});

test("a message repeats no more than 64 characters of what was typed before the region", () => {
  const [suggestion] = suggestionsFor(`${"x".repeat(200)}, Texas`);
  expect(suggestion).toBe("Texas, United States");
  expect(suggestionsFor(`Austin, ${"x".repeat(64)} Texas`)).toEqual([]);
});

/** The places that a refusal says would be close. */
function suggestionsFor(typed: string): string[] {
  const read = readLocation(typed);
  if (!("problem" in read)) return [];
  const [, close = ""] = / Close to it: (.*)\.$/.exec(read.problem) ?? [];
  return [...close.matchAll(/"([^"]*)"/g)].map(([, place = ""]) => place);
}
