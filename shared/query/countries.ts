import { createRequire } from "node:module";
import type cldr from "cldr-core/supplemental/territoryInfo.json";
import type isoCodes from "i18n-iso-countries/codes.json";
import type isoNames from "i18n-iso-countries/langs/en.json";
import { foldName, removeSpaces } from "../gazetteer/fold-name.ts";
import { cachedTables } from "../gazetteer/table-cache.ts";

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

type LanguageUse = { _populationPercent: string; _officialStatus?: string };
type Territories = Record<string, { _gdp: string; languagePopulation?: Record<string, LanguageUse> }>;

type Countries = {
  namesByCode: Map<string, string>;
  codesByName: Map<string, string>;
  codesByAlias: Map<string, string>;
  namesByAlias: Map<string, string>;
  /** Names that contain a comma themselves: `Virgin Islands, U.S.`. */
  codesByNameWithComma: Map<string, string>;
  gdpsUsd: Map<string, number>;
};

/** Loads a package when it is called. */
const load = createRequire(import.meta.url);

const countries = cachedTables([import.meta.url, import.meta.resolve("../gazetteer/fold-name.ts")], readCountries);

const article = "(?:the|la|le|les|el|los|las|il|der|die|das)";
const adjective =
  "(?:arab|bolivarian|co operative|cooperative|democratic|federal|federated|federative|former|hashemite|independent|islamic|oriental|people s|plurinational|socialist|united|yugoslav)";
const stateForm = "(?:commonwealth|federation|grand duchy|kingdom|principality|republic|sultanate|union)";
/** `state of` alone is also the prefix of regions: Niger, Mexico and Georgia are names of both a region and a country. */
const state = `(?:(?:${adjective} )+states?|state(?= of (?:israel|kuwait|libya|palestine|qatar)$))`;
/** The prefixes of a folded country name: an article, `kingdom of`, `people s democratic republic of`. */
const prefixes = new RegExp(`^(?:${article} )?(?:(?:(?:${adjective} )*${stateForm}|${state}) of (?:the )?)*`);
const articlePrefix = new RegExp(`^${article} `);
/** The same for suggestions: also `state of`, `greater`, and prefixes without a name after them. */
const loosePrefixes = new RegExp(
  `^(?:greater(?: |$))?(?:${article}(?: |$))?(?:(?:${adjective} )*(?:${stateForm}|states?) of(?: the)?(?: |$))*`,
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
export const stripStateForm = (folded: string): string => folded.replace(loosePrefixes, "");

/** The code of a country by its exact canonical name. */
export const countryCodeByCanonicalName = (name: string): string | undefined => countries.codesByName.get(name);

/** The code of a country by the two folded parts of a name with a comma: `korea`, `republic of`. */
export function countryCodeByCommaParts(name: string, rest: string): string | undefined {
  const known = countries.codesByNameWithComma.get(removeSpaces(`${name} ${rest}`));
  return known ?? (movedPrefixEnd.test(rest) ? countryCodeByFoldedName(`${rest} ${name}`) : undefined);
}

/** The canonical English name of a country, as used in answers; undefined for an unknown code. */
export const countryName = (code: string): string | undefined => countries.namesByCode.get(code);

/** The name of a country in Google's list of locations, which all providers use. */
export const googleCountryName = (code: string): string | undefined => googleNames.get(code) ?? countryName(code);

/** Every folded name of every country, with its canonical name. */
export const countryNamesByAlias = (): ReadonlyMap<string, string> => countries.namesByAlias;

/** The yearly GDP of a country in USD. The larger it is, the more likely a location without a country is in it. */
export const gdpUsd = (code: string): number => countries.gdpsUsd.get(code) ?? 0;

/** A remark must be another name of the same country: `Myanmar (Burma)`, but not `Samoa (American)`. */
function codeOfNameWithRemark(name: string, remark: string): string | undefined {
  const code = countryCodeByFoldedName(name);
  return code !== undefined && code === countryCodeByFoldedName(remark) ? code : countryCodeByCommaParts(name, remark);
}

const codeOfName = (name: string): string | undefined => (name.length > codeLengthMax ? codeOf(name) : undefined);

const codeOf = (name: string): string | undefined => countries.codesByAlias.get(removeSpaces(name));

/**
 * ICU has the names that people use (`Russia`, not `Russian Federation`); the package i18n-iso-countries has official and short
 * ones. In order of precedence: canonical names and codes, the names listed above, other English names, and the countries' names
 * in their own languages.
 */
function readCountries(): Countries {
  // `load` cannot know the types of what it loads.
  const codes = load("i18n-iso-countries/codes.json") as typeof isoCodes;
  const packageNames: Record<string, string | string[]> = (load("i18n-iso-countries/langs/en.json") as typeof isoNames)
    .countries;
  const territories: Territories = (load("cldr-core/supplemental/territoryInfo.json") as typeof cldr).supplemental
    .territoryInfo;
  const icuNames = new Intl.DisplayNames("en", { type: "region" });
  const officialNames = (code: string) => [packageNames[code] ?? []].flat();
  const namesByCode = new Map(
    codes.map(([code = ""]) => [code, canonicalName(icuNames.of(code) ?? code, officialNames(code))]),
  );
  const read: Countries = {
    namesByCode,
    codesByName: new Map([...namesByCode].map(([code, name]) => [name, code])),
    codesByAlias: new Map(),
    namesByAlias: new Map(),
    codesByNameWithComma: new Map(),
    gdpsUsd: new Map(Object.entries(territories).map(([code, { _gdp: usd }]) => [code, Number(usd)])),
  };
  for (const [code = "", alpha3 = ""] of codes) {
    const name = namesByCode.get(code) ?? "";
    for (const alias of [name, code, alpha3]) read.codesByAlias.set(removeSpaces(foldName(alias)), code);
    read.namesByAlias.set(foldName(name), name);
  }
  const owners: AliasOwners = new Map();
  addAliases(read, owners, (code) => additionalNames.get(code) ?? []);
  addAliases(read, owners, (code) => [
    ...officialNames(code),
    ...withoutRemark(icuNames.of(code) ?? ""),
    ...[googleNames.get(code) ?? []].flat(),
  ]);
  addAliases(read, owners, namesInOwnLanguages(territories));
  return read;
}

/** ICU's name without abbreviations, or the official one if ICU's contains a remark (`Hong Kong SAR China`, `Congo - Kinshasa`). */
function canonicalName(icuName: string, [officialName]: readonly string[]): string {
  const name = icuName
    .replaceAll("&", "and")
    .replaceAll("’", "'")
    .replace(/\bSt\. /g, "Saint ");
  return / - |\(|\bSAR\b/.test(name) ? (officialName ?? name) : name;
}

/** The country of every alias seen so far; null for an alias that two countries share and that therefore belongs to neither. */
type AliasOwners = Map<string, string | null>;

/**
 * An alias that two countries share (`Congo`) belongs to neither: it is refused, with both as suggestions. An alias from an
 * earlier call keeps its country.
 */
function addAliases(read: Countries, owners: AliasOwners, aliasesOf: (code: string) => readonly string[]): void {
  const earlierAliases = new Set(owners.keys());
  for (const [code, name] of read.namesByCode) {
    for (const alias of aliasesOf(code)) {
      if (alias.includes(",")) read.codesByNameWithComma.set(removeSpaces(foldName(alias)), code);
      for (const spelling of [alias, ...withoutRemark(alias).slice(0, 1)]) {
        const key = removeSpaces(foldName(spelling));
        if (earlierAliases.has(key)) continue;
        owners.set(key, (owners.get(key) ?? code) === code && owners.get(key) !== null ? code : null);
        read.namesByAlias.set(foldName(spelling), name);
      }
    }
  }
  for (const [key, code] of owners) {
    if (code !== null && !read.codesByAlias.has(key)) read.codesByAlias.set(key, code);
  }
}

/** Each country's names in its official languages, short names included: `Deutschland`, `Belgique`, `日本`, `香港`. */
function namesInOwnLanguages(territories: Territories): (code: string) => string[] {
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
