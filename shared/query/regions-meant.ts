import { citiesNamed, type City } from "../gazetteer/gazetteer.ts";
import { countryCodeByName, countryName } from "./countries.ts";
import { foldName, removeSpaces } from "../gazetteer/fold-name.ts";
import { hasSubdivision, subdivisionsByCode, usState, type UsState } from "./subdivisions.ts";

/**
 * The regions that the last part of a location may mean: a country, or a state of the United States, as `Delaware, United States`.
 * A text that is both (`DE`, `Georgia`) means the one that has the place before it. If both have it, or neither, both are
 * returned; after a name that neither has, it is the country.
 * @param within the parts before it. Without any, a text that is both is the country.
 */
export function regionsMeant(within: readonly string[], last: string): string[] {
  const folded = removeSpaces(foldName(last));
  const countryCode = countryCodeByName(last);
  const country = countryName(countryCode ?? "");
  const state = usState(folded);
  const isCode = state?.code.toLowerCase() === folded;
  if (countryCode === undefined || country === undefined) {
    return state && isCode ? [inUnitedStates(state), ...rivals(within, { folded, state })] : [];
  }
  if (state === undefined || within.length === 0) return [country];
  const regions = { state: inUnitedStates(state), country };
  const [place = "", ...areas] = within;
  if (areas.some((area) => hasSubdivision(countryCode, foldName(area)))) return [country];
  const isArea = areas.length === 0 && hasSubdivision(countryCode, foldName(place));
  const cities = citiesNamed(place);
  for (const known of [cities.filter(({ isLarge }) => isLarge), cities]) {
    const isInState = known.some(({ stateCode }) => stateCode === state.code);
    const isInCountry = isArea || known.some((city) => city.countryCode === countryCode);
    if (isInState !== isInCountry) return [isInState ? regions.state : country];
    if (isInState) return [regions.state, country];
  }
  return isCode ? [regions.state, country] : [country];
}

/** The region that a city is in: the state in the United States, or else the country. */
export function whereKnown({ countryCode, stateCode }: City): string {
  const state = usState(foldName(stateCode ?? ""));
  return state ? inUnitedStates(state) : (countryName(countryCode) ?? "");
}

/**
 * The regions of other countries with the code of a state, if one of these countries has the place and the state has not:
 * `Perth, WA`.
 */
function rivals([place = ""]: readonly string[], { folded, state }: { folded: string; state: UsState }): string[] {
  const cities = citiesNamed(place);
  if (cities.some(({ stateCode }) => stateCode === state.code)) return [];
  const countries = new Set(cities.filter(({ isLarge }) => isLarge).map(({ countryCode }) => countryName(countryCode)));
  countries.delete("United States");
  return subdivisionsByCode(folded).filter((region) => countries.has(region.slice(region.lastIndexOf(",") + 2)));
}

function inUnitedStates({ name }: UsState): string {
  return `${name}, United States`;
}
