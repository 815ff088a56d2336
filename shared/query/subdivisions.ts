import { createRequire } from "node:module";
import type cldr from "cldr-subdivisions-full/subdivisions/en/en.json";
import type * as iso3166 from "iso-3166/2.js";
import { countryName, gdpUsd } from "./countries.ts";
import { foldLocationPart, foldName, removeSpaces } from "../gazetteer/fold-name.ts";
import { cachedTables } from "../gazetteer/table-cache.ts";

/** States, provinces and other subdivisions of countries, each with its country: `Texas, United States`. */
type Subdivisions = {
  /** By folded name without spaces; one subdivision per country. */
  byName: Map<string, Map<string, string>>;
  /** By folded code, `us tx` or `tx`; one subdivision per country. */
  byCode: Map<string, Map<string, string>>;
  /** By the folded code of the country and the folded name in its own language, where English has another one: `de bayern`. */
  byOwnName: Map<string, Map<string, string>>;
  /** By first letter: folded names and their subdivisions. */
  byInitial: Map<string, Map<string, string>>;
  /** By folded code, and by folded name without spaces. */
  usStates: Map<string, UsState>;
};

/** `{ code: "TX", name: "Texas" }` */
export type UsState = { code: string; name: string };

/** Where Google's list has another name than CLDR. */
const googleNames: Readonly<Record<string, string>> = { usdc: "District of Columbia" };

/** Loads a package when it is called. */
const load = createRequire(import.meta.url);

let cached: Subdivisions | undefined;

/** The subdivisions with a folded name, those of larger economies first. */
export function subdivisionsByName(text: string): string[] {
  return [...(loadSubdivisions().byName.get(removeSpaces(text))?.values() ?? [])];
}

/** The subdivisions with a folded ISO 3166-2 code, with or without its country: `wa` → `Washington, United States`, `Western Australia, Australia`, … */
export function subdivisionsByCode(text: string): string[] {
  const { byCode } = loadSubdivisions();
  return [...(byCode.get(text) ?? byCode.get(removeSpaces(text)) ?? new Map<string, string>()).values()];
}

/** The subdivision of a country with a folded ISO 3166-2 code: `AU`, `wa` → `Western Australia, Australia`. */
export const subdivisionByCode = (countryCode: string, code: string): string | undefined =>
  loadSubdivisions().byCode.get(`${countryCode.toLowerCase()} ${code}`)?.get(countryCode);

/** The subdivisions of a country by a folded code, or a folded name in its own language: `DE`, `bayern` → `Bavaria, Germany`. */
export function englishSubdivisions(countryCode: string, text: string): string[] {
  const { byCode, byOwnName } = loadSubdivisions();
  const key = `${countryCode.toLowerCase()} ${removeSpaces(text)}`;
  return [byCode, byOwnName].flatMap((groups) => [...(groups.get(key)?.values() ?? [])]);
}

/** Folded and displayed names of the subdivisions that begin with the same letter as a folded text. */
export function subdivisionNamesWithInitial(text: string): ReadonlyMap<string, string> {
  return loadSubdivisions().byInitial.get(text.charAt(0)) ?? new Map();
}

/** A state of the United States, or its capital's district, by its folded postal code or name. */
export const usState = (text: string): UsState | undefined => loadSubdivisions().usStates.get(removeSpaces(text));

/** Whether a country has a subdivision with this folded name or code. */
export function hasSubdivision(countryCode: string, text: string): boolean {
  const { byName, byCode } = loadSubdivisions();
  const key = removeSpaces(text);
  return byName.get(key)?.has(countryCode) === true || byCode.has(`${countryCode.toLowerCase()} ${key}`);
}

/** The code that decides which names subdivisions have. */
const files = [
  import.meta.url,
  ...["./countries.ts", "../gazetteer/fold-name.ts"].map((file) => import.meta.resolve(file)),
];

/** Reads the lists, if they have not been read yet. They take 13 MB and up to 0.1 s, so a process calls it when it starts. */
export function loadSubdivisions(): Subdivisions {
  cached ??= cachedTables(files, readSubdivisions);
  return cached;
}

/** CLDR has English names (`Bavaria`), the package iso-3166 the country's own (`Bayern`). A code is mapped to the English name. */
function readSubdivisions(): Subdivisions {
  // `load` cannot know the types of what it loads.
  const { iso31662 } = load("iso-3166/2.js") as typeof iso3166;
  const englishNames = load("cldr-subdivisions-full/subdivisions/en/en.json") as typeof cldr;
  const ownNames = new Map(iso31662.map(({ code, name }) => [code.replace("-", "").toLowerCase(), name]));
  const subdivisionIndex: Subdivisions = {
    byName: new Map(),
    byCode: new Map(),
    byOwnName: new Map(),
    byInitial: new Map(),
    usStates: new Map(),
  };
  const largestFirst = Object.entries(englishNames.subdivisions.localeDisplayNames.subdivisions)
    .map(([id, name]) => ({ id, name: googleNames[id] ?? name, countryCode: id.slice(0, 2).toUpperCase() }))
    .map((subdivision) => ({ ...subdivision, usd: gdpUsd(subdivision.countryCode) }))
    .toSorted((a, b) => b.usd - a.usd);
  for (const { id, name, countryCode } of largestFirst) {
    const country = countryName(countryCode);
    if (country === undefined) continue;
    const english = `${spellings(name)[0] ?? name}, ${country}`;
    for (const spelling of new Set([...new Set([name, ownNames.get(id) ?? name])].flatMap(spellings))) {
      const folded = foldName(spelling);
      const location = `${spelling}, ${country}`;
      const ownKey = `${id.slice(0, 2)} ${removeSpaces(foldLocationPart(spelling))}`;
      if (location !== english) add(subdivisionIndex.byOwnName, ownKey, english, english);
      add(subdivisionIndex.byName, removeSpaces(folded), countryCode, location);
      add(subdivisionIndex.byInitial, folded.charAt(0), folded, location);
    }
    const code = id.slice(2);
    add(subdivisionIndex.byCode, `${id.slice(0, 2)} ${code}`, countryCode, english);
    if (countryCode === "US") {
      for (const key of [code, removeSpaces(foldName(name))]) {
        subdivisionIndex.usStates.set(key, { code: code.toUpperCase(), name });
      }
    }
    // A number or a single letter is ambiguous without the country.
    if (/^[a-z]{2,}$/.test(code)) add(subdivisionIndex.byCode, code, countryCode, english);
  }
  return subdivisionIndex;
}

/** `Asturias, Principado de` → `Asturias`, `Principado de Asturias`, without remarks in brackets and footnote numbers. */
function spellings(name: string): string[] {
  const [first = "", ...rest] = name
    .replace(/\(.*?\)|[²³]/g, "")
    .split(",")
    .map((part) => part.trim());
  return rest.length === 0 ? [first] : [first, `${rest.join(" ")} ${first}`];
}

/** Keeps the first location of each key: for one name in one country, that is the English spelling. */
function add(groups: Map<string, Map<string, string>>, group: string, key: string, location: string): void {
  const locations = groups.get(group) ?? new Map<string, string>();
  if (!locations.has(key)) locations.set(key, location);
  groups.set(group, locations);
}
