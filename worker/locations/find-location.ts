import type { Database } from "../../shared/database/pool.ts";
import { countryName } from "../../shared/query/countries.ts";
import { candidatesMax, countryOf, isFinerThanCountry, knownPart, placesMeant } from "../../shared/query/locations.ts";
import { type ListedLocation, withoutCountry } from "./listed-location.ts";
import { findFirstParts, findNamesakes, type StoredLocation } from "./stored-lists.ts";
import { foldLocationPart } from "../../shared/gazetteer/fold-name.ts";
import { otherNamesOf } from "../../shared/gazetteer/gazetteer.ts";
import { englishSubdivisions } from "../../shared/query/subdivisions.ts";
import { closestNames } from "../../shared/errors/closest-names.ts";

/**
 * What a location means in the providers' lists. It is ambiguous if a list has several of that name. Candidates are locations
 * that a caller can send instead: of the same name, or of a similar one.
 */
export type FoundLocation =
  | { isAmbiguous: true; candidates: readonly string[] }
  | {
      isAmbiguous: false;
      /** The name in the list of each provider that has it, in order of preference. */
      names: ReadonlyMap<string, string>;
      /** The providers whose lists lack it. */
      lackedBy: ReadonlySet<string>;
      /** Empty if a list has it. Undefined if there was no time to look for similar names: a later look-up may find some. */
      candidates: readonly string[] | undefined;
    };

interface Lists {
  database: Database;
  /** Those whose lists count, in order of preference. */
  providers: readonly string[];
  similarNames: SimilarNames;
}

/** Looks up a canonical location, finer than a country, in the stored lists. */
export async function findLocation(lists: Lists, location: string): Promise<FoundLocation> {
  const { matches, namesakes } = await matchIn(lists, location);
  const several = matches.filter(({ rows }) => rows.length > 1);
  if (several.length > 0) return { isAmbiguous: true, candidates: toCandidates(rowsOf(several)) };
  const names = new Map(matches.flatMap(({ provider, rows: [row] }) => (row ? [[provider, row.name] as const] : [])));
  const lackedBy = new Set(lists.providers.filter((provider) => !names.has(provider)));
  const similar = names.size > 0 ? [] : await findSimilar(lists, location, namesakes);
  return { isAmbiguous: false, names, lackedBy, candidates: similar && toCandidates(similar) };
}

/** The rows of each list that a location may mean, and all rows of its name in its country. */
async function matchIn(lists: Lists, location: string): Promise<{ matches: Match[]; namesakes: StoredLocation[] }> {
  const { database, providers } = lists;
  const typed = toTypedLocation(location);
  const { countryCode, parts } = typed;
  const namesakes = await findNamesakes(database, providers, { countryCode, firstParts: parts.slice(0, 1) });
  const named = matchNames(providers, [typed], namesakes);
  const matches = rowsOf(named).length > 0 ? named : await matchOtherNames(lists, typed);
  return { matches, namesakes };
}

type Match = { provider: string; rows: StoredLocation[] };

const rowsOf = (matches: readonly Match[]): StoredLocation[] => matches.flatMap(({ rows }) => rows);

/** The rows of each list that a location may mean by one of its names. */
function matchNames(
  providers: readonly string[],
  names: readonly TypedLocation[],
  namesakes: readonly StoredLocation[],
): Match[] {
  return providers.map((provider) => {
    const listed = namesakes.filter((row) => row.provider === provider);
    const matched = new Set(names.flatMap((typed) => matchLocation(typed, listed)).map(({ name }) => name));
    return { provider, rows: listed.filter(({ name }) => matched.has(name)) };
  });
}

/**
 * The rows that have the location by another name of it: `Köln` means `Cologne`. All cities of the country that have the typed
 * name count, so of two that the lists have, none is guessed. If no city has it, it may be a region: `Bayern`. That is no city of
 * the region's name.
 */
async function matchOtherNames({ database, providers }: Lists, typed: TypedLocation): Promise<Match[]> {
  const { countryCode } = typed;
  const [firstPart = "", ...regions] = typed.parts;
  const ofCities = [...(await otherNamesOf(firstPart, countryCode))];
  const firstParts = ofCities.length > 0 ? ofCities : englishRegions(firstPart, countryCode);
  if (firstParts.length === 0) return matchNames(providers, [], []);
  const namesakes = (await findNamesakes(database, providers, { countryCode, firstParts })).filter(
    ({ folded }) => ofCities.length > 0 || firstParts.includes(folded),
  );
  const names = firstParts.map((name) => ({ ...typed, cityAndRegion: "", parts: [name, ...regions] }));
  return matchNames(providers, names, namesakes);
}

/** The same name elsewhere in the country, or else names that it may be a misspelling of, or else the place in a longer name. */
async function findSimilar(
  lists: Lists,
  location: string,
  namesakes: StoredLocation[],
): Promise<StoredLocation[] | undefined> {
  if (namesakes.length > 0) return namesakes;
  const { database, providers, similarNames } = lists;
  const { countryCode, parts } = toTypedLocation(location);
  const [firstPart = ""] = parts;
  // A similar postcode is another place, and comparing tens of thousands of them would delay other searches.
  const isPostcode = /\d/.test(firstPart);
  const closest = isPostcode ? [] : await similarNames.find(providers, { countryCode, firstPart });
  if (closest === undefined) return undefined;
  if (closest.length > 0) return findNamesakes(database, providers, { countryCode, firstParts: closest });
  const known = knownPart(location);
  const meant: StoredLocation[] = [];
  for (const place of known === "place" ? [] : placesMeant(location, known).filter(isFinerThanCountry))
    meant.push(...rowsOf((await matchIn(lists, place)).matches));
  return meant;
}

/** Places first, markets after them; each name once, whichever list has it. */
function toCandidates(rows: readonly StoredLocation[]): string[] {
  const places = [...rows.filter(({ isMarket }) => !isMarket), ...rows.filter(({ isMarket }) => isMarket)];
  const names = places.map(({ name, countryCode }) => `${withoutCountry(name)},${countryName(countryCode) ?? ""}`);
  return [...new Set(names)].slice(0, candidatesMax);
}

/** A location of a query, split for the comparison with a list. */
type TypedLocation = {
  countryCode: string;
  /** City and region as in the query: `Munich,Bavaria`. */
  cityAndRegion: string;
  /** Each of them, folded: what the caller means, then what it is in. */
  parts: string[];
  /** The names of each that it is in. Found once: a city has hundreds of other names, and each is compared in every list. */
  accepted: ReadonlySet<string>[];
};

type Row = Pick<ListedLocation, "name" | "folded" | "isMarket">;

export function toTypedLocation(location: string): TypedLocation {
  const cityAndRegion = location.slice(0, location.lastIndexOf(","));
  const countryCode = countryOf(location);
  const parts = cityAndRegion.split(",").map(foldLocationPart);
  const accepted = parts.slice(1).map((region) => new Set([region, ...englishRegions(region, countryCode)]));
  return { countryCode, cityAndRegion, parts, accepted };
}

/**
 * The rows that a typed location may mean. One row means that: its full name wins, `New York,United States` is the state;
 * otherwise the typed parts must all be in the name, in their order: `Munich` means `Munich,Bavaria` unless there is a second
 * Munich in the country. Several rows mean that the caller has to say more: no row is preferred.
 * @param rows the rows of the country that begin with the first typed part.
 */
export function matchLocation(typed: TypedLocation, rows: readonly Row[]): Row[] {
  const folded = typed.parts.join(",");
  const sameName = rows.filter((row) => row.folded === folded);
  if (sameName.length > 0) return bySpelling(typed, sameName);
  const [first = ""] = typed.parts;
  return rows.filter((row) => {
    const [name, ...within] = row.folded.split(",");
    return !row.isMarket && name === first && hasInOrder(within, typed.accepted);
  });
}

/** Of names that differ only in accents or case, the one with the exact spelling. */
function bySpelling({ cityAndRegion }: TypedLocation, rows: Row[]): Row[] {
  const exact = rows.filter(({ name }) => name.startsWith(`${cityAndRegion},`));
  return exact.length === 1 ? exact : rows;
}

function hasInOrder(parts: readonly string[], accepted: readonly ReadonlySet<string>[]): boolean {
  let found = 0;
  for (const part of parts) if (accepted[found]?.has(part)) found += 1;
  return found === accepted.length;
}

/**
 * The English name of a region by its code in this country, or by its name in the country's language: `tx` or, from `T.X.`, `t x` →
 * `texas`; `bayern` → `bavaria`.
 */
const englishRegions = (region: string, countryCode: string): string[] =>
  englishSubdivisions(countryCode, region).map((name) => foldLocationPart(name.slice(0, name.lastIndexOf(","))));

/**
 * The share of a worker's time that comparing names may take. A comparison with all names of a country takes up to 0.3 s,
 * and the refusal that it is for is free.
 */
const shareMax = 0.05;

/** Finds names that another may be a misspelling of, one at a time. */
export class SimilarNames {
  readonly #database: Database;
  #againAtMs = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  /** @returns folded first parts of names of the country, closest first; undefined if the share of the time is used up. */
  async find(
    providers: readonly string[],
    named: { countryCode: string; firstPart: string },
  ): Promise<string[] | undefined> {
    const startedAtMs = performance.now();
    if (startedAtMs < this.#againAtMs) return undefined;
    this.#againAtMs = Number.POSITIVE_INFINITY;
    try {
      const names = await findFirstParts(this.#database, providers, named);
      return closestNames(named.firstPart, new Map(names.map((name) => [name, name])));
    } finally {
      const endedAtMs = performance.now();
      this.#againAtMs = startedAtMs + (endedAtMs - startedAtMs) / shareMax;
    }
  }
}
