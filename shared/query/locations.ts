import {
  countryCodeByCanonicalName,
  countryCodeByCommaParts,
  countryCodeByName,
  countryName,
  countryNamesByAlias,
  stripStateForm,
} from "./countries.ts";
import { citiesNamed, citiesNamedFolded, type City } from "../gazetteer/gazetteer.ts";
import { closestNames, didYouMean, suggestionsMax } from "../errors/closest-names.ts";
import { truncate } from "../errors/truncate.ts";
import { foldLocationPart, foldName, removeSpaces } from "../gazetteer/fold-name.ts";
import {
  hasSubdivision,
  subdivisionNamesWithInitial,
  subdivisionsByCode,
  subdivisionsByName,
  usState,
  type UsState,
} from "./subdivisions.ts";

/** The most words of a country or a place at the end of a text without commas, or at its beginning. */
const regionWordsMax = 6;
/** A shorter word may be the code of a region, in any language a part of a name, or an initial: `a.M.`. */
const placeLettersMin = 4;
/** The most locations that an error proposes. */
export const candidatesMax = 10;

/** What names of regions have beside the name itself, above all in Google's list: `Skåne County`, `State of Sao Paulo`. */
const regionForm =
  /(?:^| )(?:canton|co|county|department|district|governorate|krai|oblast|prefecture|province|region|state|voivodeship)(?: of)?(?= |$)/g;
const withoutRegionForm = (part: string) => foldName(part).replace(regionForm, "").trim();

type Location = { location: string; countryCode: string };

/**
 * Reads a location as a person writes it: `austin, Texas, usa` → `{location: "austin,Texas,United States", countryCode: "US"}`.
 * Only the country is checked, and replaced by its canonical name. City and region stay as typed. A last part that is the code
 * of a state of the United States is completed: `Boise, ID` → `Boise,Idaho,United States`.
 * For an unreadable location, returns a sentence for the caller that says what was expected, with suggestions.
 */
export function readLocation(text: string): Location | { problem: string } {
  const known = countryCodeByCanonicalName(text);
  if (known !== undefined) return { location: text, countryCode: known };
  const parts = text.split(",").map((part) => part.trim());
  const folded = parts.map(foldName);
  if (folded.includes("")) {
    return {
      problem: 'Expected a location such as "Austin, Texas, United States", without empty parts between commas.',
    };
  }
  const withComma = countryCodeByCommaParts(folded.at(-2) ?? "", folded.at(-1) ?? "");
  if (withComma !== undefined) return inRegion(parts.slice(0, -2), countryName(withComma) ?? "");
  const [within, last = ""] = [parts.slice(0, -1), parts.at(-1)];
  const [region, other] = regionsMeant(within, last);
  if (region === undefined) return { problem: unknownCountry(parts) };
  return other === undefined ? inRegion(within, region) : { problem: ambiguousRegion(within, last) };
}

/** A country that is written twice, `Berlin, Germany, DE`, is named once, unless it has a place of its name: `Singapore, SG`. */
function inRegion(within: readonly string[], region: string): Location {
  const parts = region.split(", ");
  const countryCode = countryOf(parts.join(","));
  const area = within.at(-1) ?? "";
  const isRepeated = countryCodeByName(area) === countryCode && !isPlaceIn(countryCode, area);
  return { location: [...(isRepeated ? within.slice(0, -1) : within), ...parts].join(","), countryCode };
}

/** Whether a country is known to have a city or region of this name. */
const isPlaceIn = (countryCode: string, name: string): boolean =>
  hasSubdivision(countryCode, foldName(name)) || citiesNamed(name).some((city) => city.countryCode === countryCode);

/** The ISO 3166-1 alpha-2 code of a canonical location's country, in upper case. */
export function countryOf(location: string): string {
  const code = countryCodeByCanonicalName(location.slice(location.lastIndexOf(",") + 1));
  if (code === undefined)
    throw new Error("The location of a query must be canonical, but this one does not end with a country.");
  return code;
}

/** Whether a canonical location names a city or region in addition to the country. */
export const isFinerThanCountry = (location: string): boolean => location.includes(",");

function ambiguousRegion(within: readonly string[], last: string): string {
  const regions = regionsMeant(within, last);
  const [place = ""] = within;
  const similar = citiesNamed(place).length > 0 ? [] : similarCities(place, regions);
  const suggestion = didYouMean(similar.length > 0 ? similar : completeLocations(within, regions));
  return `"${truncate(last)}" is the code of several regions, and the place before it does not tell which.${suggestion}`;
}

function unknownCountry(parts: readonly string[]): string {
  const last = parts.at(-1) ?? "";
  const isSuggestable = truncate(last) === last && stripStateForm(foldName(last)) !== "";
  const suggestion = isSuggestable ? didYouMean(suggestLocations(parts)) : "";
  return `Unknown country "${truncate(last)}". Expected a location that ends with a country, such as "Austin, Texas, United States".${suggestion}`;
}

/**
 * Complete locations that would be accepted. Usually the country is missing (`Munich`; `Austin, Texas`) or a comma
 * (`London UK`); a trailing postcode is ignored. Otherwise the text is compared as a misspelling.
 */
function suggestLocations(parts: readonly string[]): string[] {
  const lastAt = Math.max(
    0,
    parts.findLastIndex((part) => !/^[\d\s-]+$/.test(part)),
  );
  const typedParts = parts.slice(0, lastAt);
  const words = wordsOf(parts[lastAt] ?? "");
  while (words.length > 1 && /\d/.test(words.at(-1) ?? "")) words.pop();
  // Before a bare name may only stand what it is in: `Germany, Cologne`.
  const before = typedParts.map(regionOfName);
  const bare = placesNamed(words.join(" ")).filter((place) =>
    before.every((region) => region !== undefined && place.endsWith(`, ${region}`)),
  );
  if (bare.length > 0) return bare;
  const split = splitAtRegion(typedParts, words);
  if (split.length > 0) return split;
  const word = stripStateForm(foldName(words.join(" ")));
  const countries = closestNames(word, countryNamesByAlias());
  const similar = countries.length > 0 ? countries : closestNames(word, subdivisionNamesWithInitial(word));
  return suggestRegions(typedParts, similar);
}

/** The country, or the state of the United States, that bears a name. */
function regionOfName(name: string): string | undefined {
  const state = usState(foldName(name));
  return countryName(countryCodeByName(name) ?? "") ?? (state && inUnitedStates(state));
}

/** The similar regions that have the place before them, or else where the place is: `Seoul, Korea`, `Chicago, Ill.`. */
function suggestRegions(typedParts: readonly string[], similar: readonly string[]): string[] {
  const [place = ""] = typedParts;
  const known = regionsWith(place, similar);
  const places = known.length > 0 ? [] : placesNamed(place).slice(0, suggestionsMax);
  return places.length > 0 ? places : completeLocations(typedParts, known.length > 0 ? known : similar);
}

const wordsOf = (text: string) => text.split(/[\s/;|]+/);

/** Complete locations, for words that end with a region: `Austin TX`. */
function splitAtRegion(typedParts: readonly string[], words: readonly string[]): string[] {
  for (let start = Math.max(0, words.length - regionWordsMax); start < words.length; start += 1) {
    const within = [...typedParts, words.slice(0, start).join(" ")].filter(
      (part) => stripStateForm(foldName(part)) !== "",
    );
    const regions = regionsNamed(within, words.slice(start).join(" "), start === 0);
    if (regions.length > 0) return completeLocations(within, regions);
  }
  return [];
}

/**
 * What is known of a canonical location: that its place is in the country or, right before it, the state of the United States that
 * it names; only the area around the place, or what a region is named after; or nothing. A text with a digit counts as a postcode,
 * of which none is known, but not beside a name that is known or resembles one: `10115 Berlin`. In a state a place is known only by
 * its own name: most others there are spellings in another alphabet, or usual typos.
 */
export function knownPart(location: string): "place" | "area" | "nothing" {
  const countryCode = countryOf(location);
  const isRegion = (part: string) => /\d/.test(part) || hasSubdivision(countryCode, foldName(part));
  const isInCountry = (part: string) => isRegion(part) || isPlaceIn(countryCode, part);
  const [place = "", ...areas] = location.split(",").slice(0, -1);
  if (withoutPostcodes(location) !== location && placesMeant(location, "nothing").length > 0) return "nothing";
  const state = stateAround(location);
  const isInState = () => citiesNamed(place).some((city) => city.isOwnName && whereKnown(city) === state);
  if (state === undefined ? isInCountry(place) : isRegion(place) || isInState()) return "place";
  const isKnownArea = [...areas, ...[place, ...areas].map(withoutRegionForm)].some(isInCountry);
  return isKnownArea ? "area" : "nothing";
}

/** A canonical location without the postcodes beside names. A postcode that is itself the place stays, and so does a known name: `100 Mile House`. */
function withoutPostcodes(location: string): string {
  const [place = "", ...around] = location.split(",");
  const [name = "", ...areas] = [place, ...around].map(namePart);
  return name === "" || (name !== place && isPlaceIn(countryOf(location), place))
    ? location
    : [name, ...areas.filter((area) => area !== "")].join(",");
}

/** A text without its words that are postcodes: with three digits, or two words with one each, such as `10115`, `SW1A 1AA` and `111 22`. */
function namePart(text: string): string {
  const words = text.split(" ");
  const digits = words.map((word) => word.replace(/\D/g, "").length);
  const isPostcode = (at: number) => {
    const [before = 0, own = 0, after = 0] = [digits[at - 1], digits[at], digits[at + 1]];
    return own >= 3 || (own > 0 && before + after > 0);
  };
  return words.filter((_, at) => !isPostcode(at)).join(" ");
}

/** The state of the United States right after the place of a canonical location: `Illinois, United States`. */
function stateAround(location: string): string | undefined {
  const [, area = "", country, ...rest] = location.split(",");
  const state = country === "United States" && rest.length === 0 ? usState(foldName(area)) : undefined;
  return state && inUnitedStates(state);
}

/**
 * The places that a caller may mean by a canonical location whose place is not known: of the same name elsewhere, as of the country
 * in `Taiwan,China`, unless the area is known; or else the place before a region, `Austin TX`; or else of a similar name around there;
 * or else within the text, `Delhi NCR`.
 */
export function placesMeant(location: string, known: "area" | "nothing"): string[] {
  const named = withoutPostcodes(location);
  if (named !== location) {
    const part = knownPart(named);
    const meant = part === "place" ? [] : placesMeant(named, part);
    return meant.length > 0 || part === "nothing" ? meant : [named];
  }
  const [place = ""] = location.split(",");
  const country = countryName(countryCodeByName(place) ?? "");
  const elsewhere = [country ?? [], placesNamed(place).map(withoutSpaces)].flat();
  const sameName = known === "nothing" ? elsewhere.slice(0, candidatesMax) : [];
  const region = stateAround(location) ?? (known === "nothing" ? countryPart(location) : undefined);
  if (sameName.length > 0 || region === undefined) return sameName;
  const split = location === `${place},${region}` ? placesBeforeRegion(place, region) : [];
  if (split.length > 0) return split;
  // Only the country Georgia has the name of a state.
  const state = usState(foldName(region));
  const similar = similarCities(place, state ? [region, inUnitedStates(state)] : [region]);
  const within = known === "nothing" ? placesWithin(place, region) : [];
  const inState = state ? [`${place}, ${inUnitedStates(state)}`] : [];
  return ([similar, within, inState].find(({ length }) => length > 0) ?? []).map(withoutSpaces);
}

/** The known places of a country whose names begin or end a text, the longest: those in `Delhi NCR` and `Kanton Zürich`. */
function placesWithin(text: string, country: string): string[] {
  const words = wordsOf(text);
  const isKnown = (location: string) => knownPart(location) === "place";
  for (let length = Math.min(words.length, regionWordsMax); length > 0; length -= 1) {
    const parts = [words.slice(0, length), words.slice(-length)].map((part) => part.join(" "));
    const names = new Set(parts.filter((part) => !/\d/.test(part) && foldName(part).length >= placeLettersMin));
    const known = [...names].map((name) => `${name},${country}`).filter(isKnown);
    if (known.length > 0) return known;
  }
  return [];
}

/** The places of a country, known ones or those that are meant, that a text such as `Austin TX` names with their regions. */
function placesBeforeRegion(text: string, country: string): string[] {
  const locations = splitAtRegion([], wordsOf(text)).map(withoutSpaces);
  return locations
    .filter((location) => location.endsWith(`,${country}`))
    .flatMap((location) => {
      const known = knownPart(location);
      return known === "place" ? [location] : placesMeant(location, known);
    });
}

const withoutSpaces = (location: string) => location.replaceAll(", ", ",");

/** Whether a city is in one of the regions: states of the United States and countries. */
function isIn(city: City, regions: readonly string[]): boolean {
  const where = whereKnown(city);
  return regions.some((region) => where === region || where.endsWith(`, ${region}`));
}

/** The places in the world that bear a name: states of the United States, cities, the largest first, and other regions. */
function placesNamed(typed: string): string[] {
  const named = subdivisionsByName(foldName(typed));
  const isState = (region: string) => region.endsWith(", United States");
  const cities = citiesNamed(typed);
  const large = cities.filter(({ isLarge }) => isLarge);
  const inRegions = (large.length > 0 ? large : cities).map((city) => `${typed}, ${whereKnown(city)}`);
  const places = [...named.filter(isState), ...inRegions, ...named.filter((region) => !isState(region))];
  // Of two spellings of one place, the region's own counts.
  return [...new Map(places.map((place) => [foldName(place), place])).values()].slice(0, candidatesMax);
}

/** In the order of their frequency. */
const letters = "etaoinsrhldcumfpgwybvkxjqz";
/** A shorter name is a typo away from too many others. A longer one takes too long, at a worker and for a search that costs nothing. */
const [lettersMin, lettersMax] = [4, 15];

/**
 * The cities in some regions whose name differs from a text by one letter or a swap of two, the largest first. In the United States
 * their own names count, which are English.
 */
function similarCities(typed: string, regions: readonly string[]): string[] {
  const folded = foldLocationPart(typed);
  if (folded.length < lettersMin || folded.length > lettersMax) return [];
  const cuts = Array.from({ length: folded.length + 1 }, (_, at) => [folded.slice(0, at), folded.slice(at)] as const);
  const variants = [
    ...cuts.map(([before, [first = "", second = "", ...rest]]) => before + second + first + rest.join("")),
    ...cuts.flatMap(([before, after]) => Array.from(letters, (letter) => before + letter + after)),
    ...cuts.map(([before, after]) => before + after.slice(1)),
    ...cuts.flatMap(([before, after]) => Array.from(letters, (letter) => before + letter + after.slice(1))),
  ];
  // A space more or less is a spelling, not a typo: `La Place`.
  const names = new Set(variants.filter((name) => name.replaceAll(" ", "") !== folded.replaceAll(" ", "")));
  const found = [...names].flatMap((name) =>
    citiesNamedFolded(name)
      .filter((city) => isIn(city, regions) && (city.isOwnName || city.stateCode === undefined))
      .map((city) => ({ name, city })),
  );
  // The last one of a city stays: its own name, or else the one with the most usual letter.
  const byCity = new Map(
    found
      .toReversed()
      .toSorted((one, other) => Number(one.city.isOwnName) - Number(other.city.isOwnName))
      .map((one) => [`${one.city.population} ${whereKnown(one.city)}`, one] as const),
  );
  return [...byCity.values()]
    .toSorted((one, other) => other.city.population - one.city.population)
    .slice(0, suggestionsMax)
    .map(({ name, city }) => `${name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())}, ${whereKnown(city)}`);
}

/** What a text after these parts may mean; or else the regions with that name, or with that code. Those that have the place, if any has. */
function regionsNamed(within: readonly string[], text: string, isWholeText: boolean): string[] {
  const folded = foldName(text);
  const [place = ""] = within;
  const named = [...new Set([...regionsMeant(within, text), ...subdivisionsByName(folded)])];
  const withCode = subdivisionsByCode(folded);
  const known = [named, withCode].map((regions) => regionsWith(place, regions)).find(({ length }) => length > 0);
  if (known !== undefined || named.length > 0) return known ?? named;
  // After other words or a known place, three letters are more often a word (`Hong Kong SAR`, `Tampa, Fla.`) than a code.
  const isCode = removeSpaces(folded).length === 2 || (isWholeText && citiesNamed(place).length === 0);
  return isCode ? withCode : [];
}

/** The regions that have a city of this name, or whose country has one. */
function regionsWith(place: string, regions: readonly string[]): string[] {
  const where = new Set(citiesNamed(place).map(whereKnown));
  return regions.filter((region) => where.has(region) || where.has(countryPart(region)));
}

const countryPart = (region: string): string => region.slice(region.lastIndexOf(",") + 1).trim();

/**
 * Puts the typed parts before each region, unless they are longer than a message may repeat, and without the country of the region,
 * which stood first: `USA, Texas`.
 */
function completeLocations(typedParts: readonly string[], regions: readonly string[]): string[] {
  return regions.slice(0, suggestionsMax).map((region) => {
    const country = region.includes(",") ? countryPart(region) : "";
    const typed = typedParts
      .filter((part) => stripStateForm(foldName(part)) !== "" && countryName(countryCodeByName(part) ?? "") !== country)
      .join(", ");
    return truncate(typed) === typed && typed !== "" ? `${typed}, ${region}` : region;
  });
}

/**
 * The regions that the last part of a location may mean: a country, or a state such as `Delaware, United States`. A text that is
 * both (`DE`, `Georgia`) means the one that contains the place before it, or the city that the place is named after
 * (`Orange County, CA`). Both are returned if both contain it. If neither does, both are returned for a code, and the country for a
 * name.
 * @param within the parts before it. Without any, a text that is both is the country.
 */
function regionsMeant(within: readonly string[], last: string): string[] {
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
  if (within.some((part) => countryCodeByName(part) === countryCode)) return [country];
  if (areas.some((area) => hasSubdivision(countryCode, foldName(area)))) return [country];
  const isArea = areas.length === 0 && hasSubdivision(countryCode, foldName(place));
  const named = citiesNamed(place);
  const cities = named.length > 0 ? named : citiesNamed(withoutRegionForm(place));
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

const inUnitedStates = ({ name }: UsState): string => `${name}, United States`;
