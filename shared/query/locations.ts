import {
  countryCodeByName,
  countryCodeByCanonicalName,
  countryCodeByFoldedName,
  countryCodeByCommaParts,
  countryName,
  countryNamesByAlias,
  stripStateForm,
} from "./countries.ts";
import { truncate, closestNames, didYouMean, foldName, suggestionsMax } from "./fuzzy-match.ts";
import { subdivisionNamesWithInitial, subdivisionsByName, subdivisionsByCode } from "./subdivisions.ts";

/** A country or region of more words is not looked for at the end of a text without commas. */
const wordsMax = 6;

export type Location = { location: string; countryCode: string };

/**
 * Reads a place as a person writes it: `austin, Texas, usa` → `{location: "austin,Texas,United States", countryCode: "US"}`.
 * Only the country is checked, and spelled as everybody else would find it; city and region stay as typed.
 * Where it cannot be read, a sentence that says what was expected, and what would be close.
 */
export function readLocation(text: string): Location | { problem: string } {
  const known = countryCodeByCanonicalName(text);
  if (known !== undefined) return { location: text, countryCode: known };
  const parts = text.split(",").map((part) => part.trim());
  const folded = parts.map(foldName);
  if (folded.includes("")) {
    return {
      problem: 'Expected a place as in "Austin, Texas, United States", with something before and after each comma.',
    };
  }
  const withComma = countryCodeByCommaParts(folded.at(-2) ?? "", folded.at(-1) ?? "");
  const countryCode = withComma ?? countryCodeByName(parts.at(-1) ?? "");
  if (countryCode === undefined) return { problem: unknownCountry(parts) };
  const finer = parts.slice(0, withComma === undefined ? -1 : -2);
  return { location: [...finer, countryName(countryCode) ?? ""].join(","), countryCode };
}

/** The ISO 3166-1 alpha-2 code of a canonical location's country, in upper case. */
export function countryOf(location: string): string {
  const code = countryCodeByCanonicalName(location.slice(location.lastIndexOf(",") + 1));
  if (code === undefined) throw new Error("The location of a query is canonical, but this one ends in no country.");
  return code;
}

/** Whether a canonical location names a city or region, and not only a country. */
export function isFinerThanCountry(location: string): boolean {
  return location.includes(",");
}

function unknownCountry(parts: readonly string[]): string {
  const last = parts.at(-1) ?? "";
  const close =
    truncate(last) === last && stripStateForm(foldName(last)) !== ""
      ? didYouMean(placesCloseTo(parts.slice(0, -1), last))
      : "";
  return `Expected a place that ends in a country, as in "Austin, Texas, United States"; "${truncate(last)}" is no country that we know.${close}`;
}

/**
 * Up to three whole places, each of which would be taken. Mostly the country was left out (`Austin, TX`), or a comma
 * (`London UK`); a postcode behind them says nothing. Only else it may be a slip of the pen.
 */
function placesCloseTo(finer: readonly string[], last: string): string[] {
  const words = last.split(/[\s/;|]+/);
  while (words.length > 1 && /\d/.test(words.at(-1) ?? "")) words.pop();
  for (let start = Math.max(0, words.length - wordsMax); start < words.length; start += 1) {
    const ends = placesCalled(foldName(words.slice(start).join(" ")), start === 0);
    if (ends.length > 0) return completed([...finer, words.slice(0, start).join(" ")], ends);
  }
  const word = stripStateForm(foldName(words.join(" ")));
  const countries = closestNames(word, countryNamesByAlias());
  return completed(finer, countries.length > 0 ? countries : closestNames(word, subdivisionNamesWithInitial(word)));
}

/** The country of a folded name, and regions of that name; or else regions of that code. */
function placesCalled(text: string, isWhole: boolean): string[] {
  const country = countryName(countryCodeByFoldedName(text) ?? "");
  const named = [...(country === undefined ? [] : [country]), ...subdivisionsByName(text)];
  // Behind other words, three letters are more often a word (`Hong Kong SAR`) than a code.
  return named.length === 0 && (isWhole || text.length === 2) ? subdivisionsByCode(text) : named;
}

/** Puts what was typed before the ends, unless that is more than a message may repeat. */
function completed(finer: readonly string[], ends: readonly string[]): string[] {
  const typed = finer.filter((part) => stripStateForm(foldName(part)) !== "").join(", ");
  const repeated = truncate(typed) === typed && typed !== "" ? [typed] : [];
  return ends.slice(0, suggestionsMax).map((end) => [...repeated, end].join(", "));
}
