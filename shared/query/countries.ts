import territoryInfo from "cldr-core/supplemental/territoryInfo.json" with { type: "json" };
import countryCodes from "i18n-iso-countries/codes.json" with { type: "json" };
import english from "i18n-iso-countries/langs/en.json" with { type: "json" };
import { foldName, removeSpaces } from "../gazetteer/fold-name.ts";

/**
 * Country names in Google's list of locations that differ from the canonical names. The providers look up locations in this list
 * (developers.google.com/google-ads/api/data/geotargets; DataForSEO: GET /v3/serp/google/locations, both as of 2025).
 */
const googleNames: ReadonlyMap<string, string> = new Map([
  ["BL", "Saint Barthelemy"],
  ["BS", "The Bahamas"],
  ["CI", "Cote d'Ivoire"],
  ["CV", "Cabo Verde"],
  ["CW", "Curacao"],
  ["FK", "Falkland Islands (Islas Malvinas)"],
  ["GM", "The Gambia"],
  ["GS", "South Georgia and the South Sandwich Islands"],
  ["HM", "Heard Island and McDonald Islands"],
  ["MM", "Myanmar (Burma)"],
  ["PS", "Palestine"],
  ["RE", "Reunion"],
  ["SH", "Saint Helena, Ascension and Tristan da Cunha"],
  ["ST", "Sao Tome and Principe"],
  ["TF", "French Southern and Antarctic Lands"],
  ["TR", "Turkiye"],
  ["UM", "United States Minor Outlying Islands"],
  ["VC", "Saint Vincent and the Grenadines"],
]);

/** Usual and older English names that neither ICU nor the package i18n-iso-countries has. */
const additionalNames: ReadonlyMap<string, readonly string[]> = new Map([
  ["BA", ["Bosnia"]],
  ["CD", ["DRC", "DR Congo", "Democratic Republic of Congo", "Congo DRC", "Congo-Kinshasa", "Zaire"]],
  ["CG", ["Republic of Congo", "Congo-Brazzaville"]],
  ["CN", ["PRC"]],
  ["FK", ["Falklands"]],
  ["GB", ["Britain", "United Kingdom of Great Britain and Northern Ireland"]],
  ["KP", ["DPRK", "Democratic People's Republic of Korea", "Korea, North"]],
  ["KR", ["Korea, South"]],
  ["LA", ["Lao PDR"]],
  ["MK", ["Macedonia", "FYROM"]],
  ["NL", ["Holland"]],
  ["SA", ["KSA"]],
  ["SZ", ["Swaziland"]],
  ["TL", ["East Timor"]],
  // Otherwise it would be read as a long name of China.
  ["TW", ["Republic of China", "Taiwan, Republic of China"]],
  ["VA", ["Vatican"]],
]);

const icuNames = new Intl.DisplayNames("en", { type: "region" });

type LanguageUse = { _populationPercent: string; _officialStatus?: string };
const territories: Record<string, { _gdp: string; languagePopulation?: Record<string, LanguageUse> }> =
  territoryInfo.supplemental.territoryInfo;

/**
 * ICU has the names that people use (`Russia`, not `Russian Federation`); the package i18n-iso-countries has official and
 * short ones. Both are read once, when this file is loaded. After that each read is one lookup.
 */
const namesByCode = new Map(countryCodes.map(([code = ""]) => [code, canonicalName(code)]));
const codesByName = new Map([...namesByCode].map(([code, name]) => [name, code]));
const codesByAlias = new Map<string, string>();
const namesByAlias = new Map<string, string>();
/** Names that contain a comma themselves: `Virgin Islands, U.S.`. */
const codesByNameWithComma = new Map<string, string>();
/** The country of every alias seen so far; null for an alias that two countries share and that therefore belongs to neither. */
const aliasOwners = new Map<string, string | null>();
collectAliases();

const article = "(?:the|la|le|les|el|los|las|il|der|die|das)";
const adjective =
  "(?:arab|bolivarian|co operative|cooperative|democratic|federal|federated|federative|former|hashemite|independent|islamic|oriental|people s|plurinational|socialist|united|yugoslav)";
const stateForm = "(?:commonwealth|federation|grand duchy|kingdom|principality|republic|sultanate|union)";
/** `state of` alone is also the prefix of regions: Niger, Mexico and Georgia are names of both a region and a country. */
const state = `(?:(?:${adjective} )+states?|state(?= of (?:israel|kuwait|libya|palestine|qatar)$))`;
/** The prefixes of a folded country name: an article, `kingdom of`, `people s democratic republic of`. */
const prefixes = new RegExp(`^(?:${article} )?(?:(?:(?:${adjective} )*${stateForm}|${state}) of (?:the )?)*`);
const articlePrefix = new RegExp(`^${article} `);
/** The same for suggestions: also `state of`, and prefixes without a name after them. */
const loosePrefixes = new RegExp(
  `^(?:${article}(?: |$))?(?:(?:${adjective} )*(?:${stateForm}|states?) of(?: the)?(?: |$))*`,
);
/** A name of at most this length may be a code. A code has no prefix except `the`: `the UK`. */
const codeLengthMax = 3;
/** The end of a prefix that was moved behind the name: `Gambia, The`, `Congo, the Democratic Republic of the`. */
const movedPrefixEnd = /(?:^the| of(?: the)?)$/;

/**
 * The ISO 3166-1 alpha-2 code of a country by any of its names: official (`the Republic of Ireland`), usual or short, with or
 * without another of its names in brackets; or by its code of two or three letters.
 */
export function countryCodeByName(name: string): string | undefined {
  const [, before = "", remark = ""] = /^([^()]+)\(([^()]+)\)$/.exec(name.trim()) ?? [];
  return countryCodeByFoldedName(foldName(name)) ?? codeOfNameWithRemark(foldName(before), foldName(remark));
}

/** The same for a folded name without brackets. */
function countryCodeByFoldedName(name: string): string | undefined {
  // The longest known name wins: without its prefix, the Republic of China would be China.
  const code = codeOf(name) ?? codeOf(name.replace(/^the /, ""));
  return code ?? codeOfName(name.replace(articlePrefix, "")) ?? codeOfName(name.replace(prefixes, ""));
}

/** A folded text without the prefixes of a country name: `republic of ireland` → `ireland`, `state of` → ``. */
export function stripStateForm(folded: string): string {
  return folded.replace(loosePrefixes, "");
}

/** The code of a country by its exact canonical name. */
export function countryCodeByCanonicalName(name: string): string | undefined {
  return codesByName.get(name);
}

/** The code of a country by the two folded parts of a name with a comma: `korea`, `republic of`. */
export function countryCodeByCommaParts(name: string, rest: string): string | undefined {
  const known = codesByNameWithComma.get(removeSpaces(`${name} ${rest}`));
  return known ?? (movedPrefixEnd.test(rest) ? countryCodeByFoldedName(`${rest} ${name}`) : undefined);
}

/** The canonical English name of a country, as used in answers; undefined for an unknown code. */
export function countryName(code: string): string | undefined {
  return namesByCode.get(code);
}

/** The name of a country in Google's list of locations, which all providers use. */
export function googleCountryName(code: string): string | undefined {
  return googleNames.get(code) ?? countryName(code);
}

/** Every folded name of every country, with its canonical name. */
export function countryNamesByAlias(): ReadonlyMap<string, string> {
  return namesByAlias;
}

/** The yearly GDP of a country in USD. The larger it is, the more likely a location without a country is in it. */
export function gdpUsd(code: string): number {
  const { _gdp: usd } = territories[code] ?? { _gdp: "0" };
  return Number(usd);
}

/** A remark must be another name of the same country: `Myanmar (Burma)`, but not `Samoa (American)`. */
function codeOfNameWithRemark(name: string, remark: string): string | undefined {
  const code = countryCodeByFoldedName(name);
  return code !== undefined && code === countryCodeByFoldedName(remark) ? code : countryCodeByCommaParts(name, remark);
}

function codeOfName(name: string): string | undefined {
  return name.length > codeLengthMax ? codeOf(name) : undefined;
}

function codeOf(name: string): string | undefined {
  return codesByAlias.get(removeSpaces(name));
}

/** ICU's name without abbreviations, or the package's if ICU's contains a remark (`Hong Kong SAR China`, `Congo - Kinshasa`). */
function canonicalName(code: string): string {
  const name = (icuNames.of(code) ?? code)
    .replaceAll("&", "and")
    .replaceAll("’", "'")
    .replace(/\bSt\. /g, "Saint ");
  return / - |\(|\bSAR\b/.test(name) ? (packageNames(code)[0] ?? name) : name;
}

/**
 * In order of precedence: canonical names and codes, the names listed above, other English names, and the
 * countries' names in their own languages.
 */
function collectAliases(): void {
  for (const [code = "", alpha3 = ""] of countryCodes) {
    const name = namesByCode.get(code) ?? "";
    for (const alias of [name, code, alpha3]) codesByAlias.set(removeSpaces(foldName(alias)), code);
    namesByAlias.set(foldName(name), name);
  }
  addAliases((code) => additionalNames.get(code) ?? []);
  addAliases((code) => [
    ...packageNames(code),
    ...withoutRemark(icuNames.of(code) ?? ""),
    ...[googleNames.get(code) ?? []].flat(),
  ]);
  addAliases(namesInOwnLanguages());
}

/**
 * An alias that two countries share (`Congo`) belongs to neither: it is refused, with both as suggestions. An alias from an
 * earlier call keeps its country.
 */
function addAliases(aliasesOf: (code: string) => readonly string[]): void {
  const earlierAliases = new Set(aliasOwners.keys());
  for (const [code, name] of namesByCode) {
    for (const alias of aliasesOf(code)) {
      if (alias.includes(",")) codesByNameWithComma.set(removeSpaces(foldName(alias)), code);
      for (const spelling of [alias, ...withoutRemark(alias).slice(0, 1)]) {
        const key = removeSpaces(foldName(spelling));
        if (earlierAliases.has(key)) continue;
        aliasOwners.set(key, (aliasOwners.get(key) ?? code) === code && aliasOwners.get(key) !== null ? code : null);
        namesByAlias.set(foldName(spelling), name);
      }
    }
  }
  for (const [key, code] of aliasOwners) if (code !== null && !codesByAlias.has(key)) codesByAlias.set(key, code);
}

/** Each country's names in its official languages, short names included: `Deutschland`, `Belgique`, `日本`, `香港`. */
function namesInOwnLanguages(): (code: string) => string[] {
  const styles = ["long", "short"] as const;
  const names = new Map<string, Intl.DisplayNames[]>();
  const namesIn = (language: string) => {
    const tag = language.replaceAll("_", "-");
    // English is the fallback for a language that ICU does not know. ICU's own fallback is the language of the machine.
    const known =
      names.get(tag) ?? styles.map((style) => new Intl.DisplayNames([tag, "en"], { type: "region", style }));
    names.set(tag, known);
    return known;
  };
  return (code) =>
    Object.entries(territories[code]?.languagePopulation ?? {})
      .filter(([, { _officialStatus: status }]) => status !== undefined)
      .flatMap(([language]) => namesIn(language).map((region) => region.of(code) ?? code))
      // `DU` is Welsh for UK, but unknown elsewhere.
      .filter((name) => !/^[A-Z]{1,3}$/.test(name));
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
