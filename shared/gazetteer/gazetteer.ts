import { NameTable } from "./name-table.ts";
import { readCities } from "./read-cities.ts";

/** The package has 199,568 cities. */
const citiesMax = 250_000;
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

type Gazetteer = { names: NameTable; countries: Uint16Array; regions: Uint16Array; populations: Uint32Array };

let loaded: Gazetteer | undefined;

/** Loads the cities of the world, if they are not loaded yet. It takes 0.15 s, so a process calls it when it starts. */
export function loadGazetteer(): void {
  loaded ??= readGazetteer();
}

/** The cities that have a name in some language, in any case and with or without accents, the largest first. */
export function citiesNamed(name: string): City[] {
  loaded ??= readGazetteer();
  const { names, countries, regions, populations } = loaded;
  const found = names.find(name).map((city): City => {
    const [country = 0, population = 0] = [countries[city], populations[city]];
    return {
      countryCode: toLetters(country),
      stateCode: country === unitedStates ? toLetters(regions[city] ?? 0) : undefined,
      population,
      isLarge: population >= largeFrom(country),
    };
  });
  return found.toSorted((one, other) => other.population - one.population);
}

function readGazetteer(): Gazetteer {
  const names = new NameTable();
  const countries = new Uint16Array(citiesMax);
  const regions = new Uint16Array(citiesMax);
  const populations = new Uint32Array(citiesMax);
  let cities = 0;
  readCities(({ bytes, nameStart, nameEnd, otherNamesEnd, country, region, population }) => {
    if (cities === citiesMax) throw new Error("The package has more cities than there is room for.");
    names.add(bytes, nameStart, population >= largeFrom(country) ? otherNamesEnd : nameEnd, cities);
    countries[cities] = country;
    regions[cities] = region;
    populations[cities] = population;
    cities += 1;
  });
  names.complete();
  return { names, countries, regions, populations };
}

function toLetters(code: number): string {
  return String.fromCharCode(code >> 8, code & 0xff);
}
