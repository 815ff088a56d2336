import { expect, test } from "vitest";
import { googleCountryName } from "../../shared/countries.ts";
import { countryOf, isFinerThanCountry, readPlace } from "../../shared/places.ts";
import { readQuery } from "../../shared/query.ts";
import { countries } from "../harness/countries.ts";
import { issuesOf } from "../harness/queries.ts";

test.each([
  ["usa", "United States"],
  ["U.S.", "United States"],
  ["Great Britain", "United Kingdom"],
  ["UK", "United Kingdom"],
  ["deu", "Germany"],
  ["Russian Federation", "Russia"],
  ["Seoul, Korea, Republic of", "Seoul,South Korea"],
  ["Virgin Islands, U.S.", "U.S. Virgin Islands"],
  ["Taiwan, Province of China", "Taiwan"],
  ["Islamic Republic of Iran", "Iran"],
  ["Viet Nam", "Vietnam"],
  ["Hong Kong", "Hong Kong"],
  ["ivory coast", "Côte d'Ivoire"],
  ["München, Bayern, de", "München,Bayern,Germany"],
  ["Wien, Österreich", "Wien,Austria"],
  ["Genève, Suisse", "Genève,Switzerland"],
  ["São Paulo, Brasil", "São Paulo,Brazil"],
  ["日本", "Japan"],
  ["香港", "Hong Kong"],
])("%s is read as %s", (typed, canonical) => {
  expect(readQuery({ keyword: "a", location: typed }).location).toBe(canonical);
});

test("every country is found by its code and by its name in any case, and its name is a single part", () => {
  expect(countries.length).toBeGreaterThan(240);
  for (const { code, name } of countries) {
    expect(name).not.toMatch(/,|& | - /);
    for (const typed of [
      code,
      name,
      name.toUpperCase(),
      `Somewhere, ${name}`,
      `Somewhere,${googleCountryName(code)}`,
    ]) {
      expect(readPlace(typed)).toMatchObject({ countryCode: code });
    }
    expect(countryOf(`Somewhere,${name}`)).toBe(code);
  }
});

test("the provider can tell a country from a place in it", () => {
  expect(isFinerThanCountry("Germany")).toBe(false);
  expect(isFinerThanCountry("Berlin,Germany")).toBe(true);
});

test("an unknown country is answered with what it may have been", () => {
  expect(issuesOf({ keyword: "a", location: "Berlin, Germny" })[0]?.message).toContain('"Berlin, Germany"');
  expect(issuesOf({ keyword: "a", location: "Congo" })[0]?.message).toContain('"Democratic Republic of the Congo"');
});

test.each(["Berlin,,Germany", ",Germany", "Germany,", "Berlin, \u200b, Germany", "Gotham City", "x".repeat(255)])(
  "%j is refused",
  (place) => {
    const [issue] = issuesOf({ keyword: "a", location: place });
    expect(issue?.path).toBe("location");
    expect(issue?.message).not.toContain("x".repeat(65));
  },
);
