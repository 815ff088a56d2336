import {
  countryCodeByName,
  countryCodeByCanonicalName,
  countryCodeByFoldedName,
  countryCodeByCommaParts,
  countryName,
  countryNamesByAlias,
  stripStateForm,
} from "./countries.ts";
import { closestNames, didYouMean, suggestionsMax } from "./fuzzy-match.ts";
import { truncate } from "./truncate.ts";
import { foldName } from "./fold-name.ts";
import { subdivisionNamesWithInitial, subdivisionsByName, subdivisionsByCode } from "./subdivisions.ts";

/** The most words of a country or region at the end of a text without commas. */
const regionWordsMax = 6;
/** The most locations that an error proposes. */
export const candidatesMax = 10;

export type Location = { location: string; countryCode: string };

/**
 * Reads a location as a person writes it: `austin, Texas, usa` → `{location: "austin,Texas,United States", countryCode: "US"}`.
 * Only the country is checked, and replaced by its canonical name. City and region stay as typed.
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
  const countryCode = withComma ?? countryCodeByName(parts.at(-1) ?? "");
  if (countryCode === undefined) return { problem: unknownCountry(parts) };
  const cityAndRegion = parts.slice(0, withComma === undefined ? -1 : -2);
  return { location: [...cityAndRegion, countryName(countryCode) ?? ""].join(","), countryCode };
}

/** The ISO 3166-1 alpha-2 code of a canonical location's country, in upper case. */
export function countryOf(location: string): string {
  const code = countryCodeByCanonicalName(location.slice(location.lastIndexOf(",") + 1));
  if (code === undefined)
    throw new Error("The location of a query must be canonical, but this one does not end with a country.");
  return code;
}

/** Whether a canonical location names a city or region in addition to the country. */
export function isFinerThanCountry(location: string): boolean {
  return location.includes(",");
}

function unknownCountry(parts: readonly string[]): string {
  const last = parts.at(-1) ?? "";
  const isSuggestable = truncate(last) === last && stripStateForm(foldName(last)) !== "";
  const suggestion = isSuggestable ? didYouMean(suggestLocations(parts.slice(0, -1), last)) : "";
  return `Unknown country "${truncate(last)}". Expected a location that ends with a country, such as "Austin, Texas, United States".${suggestion}`;
}

/**
 * Up to three complete locations, each of which would be accepted. Most often the country is missing (`Austin, TX`), or a comma
 * (`London UK`); a postcode after them is ignored. Only if neither applies is the text compared as a misspelling.
 */
function suggestLocations(typedParts: readonly string[], last: string): string[] {
  const words = last.split(/[\s/;|]+/);
  while (words.length > 1 && /\d/.test(words.at(-1) ?? "")) words.pop();
  for (let start = Math.max(0, words.length - regionWordsMax); start < words.length; start += 1) {
    const regions = regionsNamed(foldName(words.slice(start).join(" ")), start === 0);
    if (regions.length > 0) return completeLocations([...typedParts, words.slice(0, start).join(" ")], regions);
  }
  const word = stripStateForm(foldName(words.join(" ")));
  const countries = closestNames(word, countryNamesByAlias());
  const similar = countries.length > 0 ? countries : closestNames(word, subdivisionNamesWithInitial(word));
  return completeLocations(typedParts, similar);
}

/** The country with a folded name and the regions with that name, or else the regions with that code. */
function regionsNamed(folded: string, isWholeText: boolean): string[] {
  const country = countryName(countryCodeByFoldedName(folded) ?? "");
  const named = [...(country === undefined ? [] : [country]), ...subdivisionsByName(folded)];
  // After other words, three letters are more often a word (`Hong Kong SAR`) than a code.
  return named.length === 0 && (isWholeText || folded.length === 2) ? subdivisionsByCode(folded) : named;
}

/** Puts the typed parts before each region, unless they are longer than a message may repeat. */
function completeLocations(typedParts: readonly string[], regions: readonly string[]): string[] {
  const typed = typedParts.filter((part) => stripStateForm(foldName(part)) !== "").join(", ");
  const repeated = truncate(typed) === typed && typed !== "" ? [typed] : [];
  return regions.slice(0, suggestionsMax).map((region) => [...repeated, region].join(", "));
}
