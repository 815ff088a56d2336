import territoryInfo from "cldr-core/supplemental/territoryInfo.json" with { type: "json" };
import countryCodes from "i18n-iso-countries/codes.json" with { type: "json" };
import english from "i18n-iso-countries/langs/en.json" with { type: "json" };
import { googleNames, additionalNames } from "./country-names.ts";
import { foldName, removeSpaces } from "./fuzzy-match.ts";

const icuNames = new Intl.DisplayNames("en", { type: "region" });

type Spoken = { _populationPercent: string; _officialStatus?: string };
const territories: Record<string, { _gdp: string; languagePopulation?: Record<string, Spoken> }> =
  territoryInfo.supplemental.territoryInfo;

/**
 * ICU has the names that people use (`Russia`, not `Russian Federation`), the package the other ones, official and
 * short. Both are read once; afterwards every question is one look-up.
 */
const namesByCode = new Map(countryCodes.map(([code = ""]) => [code, canonicalName(code)]));
const codesByName = new Map([...namesByCode].map(([code, name]) => [name, code]));
const codesByAlias = new Map<string, string>();
const namesByAlias = new Map<string, string>();
/** `Virgin Islands, U.S.`: names that would be torn apart at their comma. */
const codesByNameWithComma = new Map<string, string>();
/** The aliases that were looked at, with null for those that belong to no country because two share them. */
const claims = new Map<string, string | null>();
collectAliases();

const article = "(?:the|la|le|les|el|los|las|il|der|die|das)";
const adjective =
  "(?:arab|bolivarian|co operative|cooperative|democratic|federal|federated|federative|former|hashemite|independent|islamic|oriental|people s|plurinational|socialist|united|yugoslav)";
const form = "(?:commonwealth|federation|grand duchy|kingdom|principality|republic|sultanate|union)";
/** A mere `state of` stands in front of regions as well: of Niger, Mexico, Georgia, which are countries, too. */
const state = `(?:(?:${adjective} )+states?|state(?= of (?:israel|kuwait|libya|palestine|qatar)$))`;
/** What stands in front of a country's name, folded: an article, `kingdom of`, `people s democratic republic of`. */
const inFront = new RegExp(`^(?:${article} )?(?:(?:(?:${adjective} )*${form}|${state}) of (?:the )?)*`);
const articleInFront = new RegExp(`^${article} `);
/** The same for who guesses what was meant: also `state of`, and where nothing stands behind it. */
const looselyInFront = new RegExp(
  `^(?:${article}(?: |$))?(?:(?:${adjective} )*(?:${form}|states?) of(?: the)?(?: |$))*`,
);
/** What is no longer than this may be a code, and a code has nothing in front but `the`: `the UK`. */
const codeLengthMax = 3;
/** `Gambia, The`, `Congo, the Democratic Republic of the`: what belongs in front stands behind. */
const behind = /(?:^the| of(?: the)?)$/;

/**
 * The code of a country by its name, long (`the Republic of Ireland`), usual or short, with another of its names in
 * brackets or without, or by its ISO 3166-1 code of two or three letters.
 */
export function countryCodeByName(name: string): string | undefined {
  const [, before = "", remark = ""] = /^([^()]+)\(([^()]+)\)$/.exec(name.trim()) ?? [];
  return countryCodeByFoldedName(foldName(name)) ?? codeOfRemarked(foldName(before), foldName(remark));
}

/** The same for a name that is folded already, and without brackets. */
export function countryCodeByFoldedName(name: string): string | undefined {
  // The longest that is known counts: without its form of state the Republic of China would be China.
  const code = codeOf(name) ?? codeOf(name.replace(/^the /, ""));
  return code ?? codeOfName(name.replace(articleInFront, "")) ?? codeOfName(name.replace(inFront, ""));
}

/** A folded text without what may stand in front of a country's name: `republic of ireland` → `ireland`, `state of` → ``. */
export function stripStateForm(folded: string): string {
  return folded.replace(looselyInFront, "");
}

/** The code of a country by its canonical name, to the letter. */
export function countryCodeByCanonicalName(name: string): string | undefined {
  return codesByName.get(name);
}

/** The code of a country by the two folded parts of a name with a comma: `korea`, `republic of`. */
export function countryCodeByCommaParts(name: string, rest: string): string | undefined {
  const known = codesByNameWithComma.get(removeSpaces(`${name} ${rest}`));
  return known ?? (behind.test(rest) ? countryCodeByFoldedName(`${rest} ${name}`) : undefined);
}

/** The English name by which a country stands in answers, or undefined for no such code. */
export function countryName(code: string): string | undefined {
  return namesByCode.get(code);
}

/** The name by which Google's list of places, and with it every provider, knows a country. */
export function googleCountryName(code: string): string | undefined {
  return googleNames.get(code) ?? countryName(code);
}

/** Every folded name of every country, with its canonical one. */
export function countryNamesByAlias(): ReadonlyMap<string, string> {
  return namesByAlias;
}

/** What a country produces in a year, in USD: the larger, the likelier that a place without country is in it. */
export function gdpUsd(code: string): number {
  const { _gdp: usd } = territories[code] ?? { _gdp: "0" };
  return Number(usd);
}

/** A remark counts that is the same country's: `Myanmar (Burma)`, but not `Samoa (American)`. */
function codeOfRemarked(name: string, remark: string): string | undefined {
  const code = countryCodeByFoldedName(name);
  return code !== undefined && code === countryCodeByFoldedName(remark) ? code : countryCodeByCommaParts(name, remark);
}

function codeOfName(name: string): string | undefined {
  return name.length > codeLengthMax ? codeOf(name) : undefined;
}

function codeOf(name: string): string | undefined {
  return codesByAlias.get(removeSpaces(name));
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
 * Canonical names and codes come first, then our own list of usual names, then other English names, then the countries' own
 * names for themselves.
 */
function collectAliases(): void {
  for (const [code = "", alpha3 = ""] of countryCodes) {
    const name = namesByCode.get(code) ?? "";
    for (const own of [name, code, alpha3]) codesByAlias.set(removeSpaces(foldName(own)), code);
    namesByAlias.set(foldName(name), name);
  }
  addAliases((code) => additionalNames.get(code) ?? []);
  addAliases((code) => [
    ...packageNames(code),
    ...withoutRemark(icuNames.of(code) ?? ""),
    ...[googleNames.get(code) ?? []].flat(),
  ]);
  addAliases(namesAtHome());
}

/**
 * An alias that two countries share (`Congo`) belongs to neither, and is answered with both as suggestions. None takes
 * away what was given before.
 */
function addAliases(aliasesOf: (code: string) => readonly string[]): void {
  const before = new Set(claims.keys());
  for (const [code, name] of namesByCode) {
    for (const alias of aliasesOf(code)) {
      if (alias.includes(",")) codesByNameWithComma.set(removeSpaces(foldName(alias)), code);
      for (const spelling of [alias, ...withoutRemark(alias).slice(0, 1)]) {
        const key = removeSpaces(foldName(spelling));
        if (before.has(key)) continue;
        claims.set(key, (claims.get(key) ?? code) === code && claims.get(key) !== null ? code : null);
        namesByAlias.set(foldName(spelling), name);
      }
    }
  }
  for (const [key, code] of claims) if (code !== null && !codesByAlias.has(key)) codesByAlias.set(key, code);
}

/** `Deutschland`, `Belgique`, `日本`: each country's names in its official languages, the short ones too (`香港`). */
function namesAtHome(): (code: string) => string[] {
  const styles = ["long", "short"] as const;
  const names = new Map<string, Intl.DisplayNames[]>();
  const namesIn = (language: string) => {
    const tag = language.replaceAll("_", "-");
    // English where ICU does not know the language: it would take the machine's.
    const known =
      names.get(tag) ?? styles.map((style) => new Intl.DisplayNames([tag, "en"], { type: "region", style }));
    names.set(tag, known);
    return known;
  };
  return (code) =>
    Object.entries(territories[code]?.languagePopulation ?? {})
      .filter(([, { _officialStatus: status }]) => status !== undefined)
      .flatMap(([language]) => namesIn(language).map((region) => region.of(code) ?? code))
      // `DU` is Welsh for UK, but nobody takes it for that abroad.
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
