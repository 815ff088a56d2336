import english from "cldr-subdivisions-full/subdivisions/en/en.json" with { type: "json" };
import { iso31662 } from "iso-3166/2.js";
import { countryName, gdpUsd } from "./countries.ts";
import { foldName, removeSpaces } from "./fuzzy-match.ts";

/** States, provinces and other parts of countries, each written with its country: `Texas, United States`. */
type Subdivisions = {
  /** Squeezed names, with one place for each country. */
  byName: Map<string, Map<string, string>>;
  /** Folded codes: `us tx`, `tx`. */
  byCode: Map<string, Map<string, string>>;
  /** Folded names with what they are names of, by their first letter. */
  byLetter: Map<string, Map<string, string>>;
};

let read: Subdivisions | undefined;

/** The subdivisions that a folded text is a name of, with their countries, those of larger economies first. */
export function subdivisionsByName(text: string): string[] {
  return [...(subdivisions().byName.get(removeSpaces(text))?.values() ?? [])];
}

/** The same by ISO 3166-2 code, with or without the country's: `wa` → `Washington, United States`, `Western Australia, Australia`, … */
export function subdivisionsByCode(text: string): string[] {
  const { byCode } = subdivisions();
  return [...(byCode.get(text) ?? byCode.get(removeSpaces(text)) ?? new Map<string, string>()).values()];
}

/** Folded names of subdivisions that begin with the same letter as a folded text. */
export function subdivisionNamesWithInitial(text: string): ReadonlyMap<string, string> {
  return subdivisions().byLetter.get(text.charAt(0)) ?? new Map();
}

/** Read when a place is first refused, so never in a worker. */
function subdivisions(): Subdivisions {
  read ??= readSubdivisions();
  return read;
}

/** CLDR has the names in English (`Bavaria`), the package the country's own (`Bayern`). A code stands for the English one. */
function readSubdivisions(): Subdivisions {
  const ownNames = new Map(iso31662.map(({ code, name }) => [code.replace("-", "").toLowerCase(), name]));
  const found: Subdivisions = { byName: new Map(), byCode: new Map(), byLetter: new Map() };
  const largestFirst = Object.entries(english.subdivisions.localeDisplayNames.subdivisions)
    .map(([id, name]) => ({ id, name, countryCode: id.slice(0, 2).toUpperCase() }))
    .map((subdivision) => ({ ...subdivision, usd: gdpUsd(subdivision.countryCode) }))
    .toSorted((a, b) => b.usd - a.usd);
  for (const { id, name, countryCode } of largestFirst) {
    const country = countryName(countryCode);
    if (country === undefined) continue;
    for (const spelling of new Set([name, ownNames.get(id) ?? name].flatMap(spellings))) {
      const folded = foldName(spelling);
      const place = `${spelling}, ${country}`;
      add(found.byName, removeSpaces(folded), countryCode, place);
      add(found.byLetter, folded.charAt(0), folded, place);
    }
    const place = `${spellings(name)[0] ?? name}, ${country}`;
    const code = id.slice(2);
    add(found.byCode, `${id.slice(0, 2)} ${code}`, countryCode, place);
    // A number or a letter alone is too little to go by.
    if (/^[a-z]{2,}$/.test(code)) add(found.byCode, code, countryCode, place);
  }
  return found;
}

/** `Asturias, Principado de` → `Asturias`, `Principado de Asturias`; remarks in brackets and a footnote's number are dropped. */
function spellings(name: string): string[] {
  const [first = "", ...rest] = name
    .replace(/\(.*?\)|[²³]/g, "")
    .split(",")
    .map((part) => part.trim());
  return rest.length === 0 ? [first] : [first, `${rest.join(" ")} ${first}`];
}

/** The first one stays: of one name in one country, the English spelling. */
function add(groups: Map<string, Map<string, string>>, group: string, key: string, place: string): void {
  const places = groups.get(group) ?? new Map<string, string>();
  if (!places.has(key)) places.set(key, place);
  groups.set(group, places);
}
