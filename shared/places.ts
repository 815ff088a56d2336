import countryCodes from "i18n-iso-countries/codes.json" with { type: "json" };
import english from "i18n-iso-countries/langs/en.json" with { type: "json" };
import { beginning, closeNames, didYouMean, fold } from "./spelling.ts";

const icuNames = new Intl.DisplayNames("en", { type: "region" });

/**
 * ICU has the names that people use (`Russia`, not `Russian Federation`), the package the other ones, official and
 * short. Both are read once; afterwards every question is one look-up.
 */
const namesByCode = new Map(countryCodes.map(([code = ""]) => [code, canonicalName(code)]));
const codesByName = new Map([...namesByCode].map(([code, name]) => [name, code]));
const codesByAlias = new Map<string, string>();
const namesByAlias = new Map<string, string>();
/** `Korea, Republic of`: names that would be torn apart at their comma. */
const codesByNameWithComma = new Map<string, string>();
collectAliases();

export type Place = { location: string; countryCode: string };

/**
 * Reads a place as a person writes it: `austin, Texas, usa` → `{location: "austin,Texas,United States", countryCode: "US"}`.
 * Only the country is checked, and spelled as everybody else would find it; city and region stay as typed.
 * Where it cannot be read, a sentence that says what was expected.
 */
export function readPlace(text: string): Place | { problem: string } {
  const known = codesByName.get(text);
  if (known !== undefined) return { location: text, countryCode: known };
  const parts = text.split(",").map((part) => part.trim());
  if (parts.some((part) => fold(part) === "")) {
    return {
      problem: 'Expected a place as in "Austin, Texas, United States", with something before and after each comma.',
    };
  }
  const withComma = codesByNameWithComma.get(fold(parts.slice(-2).join(" ")));
  const countryCode = withComma ?? countryCodeOf(parts.at(-1) ?? "");
  if (countryCode === undefined) return { problem: unknownCountry(parts.at(-1) ?? "") };
  const finer = parts.slice(0, withComma === undefined ? -1 : -2);
  return { location: [...finer, namesByCode.get(countryCode) ?? ""].join(","), countryCode };
}

/** The ISO 3166-1 alpha-2 code of a canonical location's country, in upper case. */
export function countryOf(location: string): string {
  const code = codesByName.get(location.slice(location.lastIndexOf(",") + 1));
  if (code === undefined) throw new Error("The location of a query is canonical, but this one ends in no country.");
  return code;
}

/** Whether a canonical location names a city or region, and not only a country. */
export function isFinerThanCountry(location: string): boolean {
  return location.includes(",");
}

/** The code of a country by its name, a usual short form, or its ISO 3166-1 code of two or three letters. */
export function countryCodeOf(name: string): string | undefined {
  return codesByAlias.get(squeeze(name));
}

/** The English name by which a country stands in answers, or undefined for no such code. */
export function countryName(code: string): string | undefined {
  return namesByCode.get(code);
}

/** ICU's name, spelled out, unless it carries a remark (`Hong Kong SAR China`, `Congo - Kinshasa`): then the package's. */
function canonicalName(code: string): string {
  const name = (icuNames.of(code) ?? code)
    .replaceAll("&", "and")
    .replaceAll("’", "'")
    .replace(/\bSt\. /g, "Saint ");
  return / - |\(|\bSAR\b/.test(name) ? (packageNames(code)[0] ?? name) : name;
}

/**
 * A name belongs to the country that it is the canonical name or code of; a mere alias that two countries share
 * (`Congo`) belongs to neither, and is answered with both as suggestions.
 */
function collectAliases(): void {
  const shared = new Map<string, string | null>();
  for (const [code = "", alpha3 = ""] of countryCodes) {
    const name = namesByCode.get(code) ?? "";
    for (const own of [name, code, alpha3]) codesByAlias.set(squeeze(own), code);
    namesByAlias.set(fold(name), name);
    for (const alias of [...packageNames(code), ...withoutRemark(icuNames.of(code) ?? "")]) {
      if (alias.includes(",")) codesByNameWithComma.set(fold(alias), code);
      for (const spelling of [alias, ...withoutRemark(alias).slice(0, 1), alias.replace(/^the /i, "")]) {
        const key = squeeze(spelling);
        shared.set(key, (shared.get(key) ?? code) === code && shared.get(key) !== null ? code : null);
        namesByAlias.set(fold(spelling), name);
      }
    }
  }
  for (const [key, code] of shared) if (code !== null && !codesByAlias.has(key)) codesByAlias.set(key, code);
}

/** `Myanmar (Burma)` → `Myanmar`, `Burma`. */
function withoutRemark(name: string): string[] {
  return name
    .split(/[()]/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function packageNames(code: string): string[] {
  const names: Record<string, string | string[]> = english.countries;
  return [names[code] ?? []].flat();
}

/** Blanks do not matter either in a country: `Viet Nam`, `U. S. A.`, `HongKong`. */
function squeeze(name: string): string {
  return fold(name)
    .replaceAll(" ", "")
    .replace(/^saint/, "st");
}

function unknownCountry(name: string): string {
  const close = didYouMean(closeNames(fold(name), namesByAlias));
  return `Expected a place that ends in a country, as in "Austin, Texas, United States"; "${beginning(name)}" is no country that we know.${close}`;
}
