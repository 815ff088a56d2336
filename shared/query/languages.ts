import iso6391 from "iso-639-1";
import { iso6392 } from "iso-639-2/2.js";
import { countryCodeByName, countryName } from "./countries.ts";
import { closestNames, didYouMean } from "../errors/closest-names.ts";
import { truncate } from "../errors/truncate.ts";
import { foldName } from "../gazetteer/fold-name.ts";
import { cachedTables } from "../gazetteer/table-cache.ts";

/** Longer than any language name with script and region. */
const nameCharactersMax = 120;
/** Longer than any BCP 47 tag of language, script and region. */
const tagCharactersMax = 16;

const latinAmerica = { code: "419", name: "Latin America", names: ["latin america", "latinoamerica"] };
/** Usual names that ICU, iso-639-1 and iso-639-2 lack. */
const additionalNames = [
  ["Castellano", "es"],
  ["Farsi", "fa"],
  ["Mandarin", "zh"],
  ["Slovene", "sl"],
] as const;
/** Languages without a two-letter code that people search in. Their names come from ICU. */
const threeLetterCodes =
  "ach ast bem bho ceb chr ckb crs fil fur gaa gsw haw hmn ilo kab kok kri loz lua luo mai mfe mni nds nso nyn pap pcm scn srn sco tum war yue";
/** Scripts written by name, as in `Chinese (Traditional)`. All others are written by code: `Serbian (Glag)`. */
const namedScripts = ["Arab", "Cyrl", "Deva", "Hans", "Hant", "Latn"];
/** Tags with a name of their own: `Brazilian Portuguese`, `Simplified Chinese`. The names come from ICU. */
const dialects =
  "de-AT de-CH en-AU en-CA en-GB en-US es-419 es-ES es-MX fa-AF fr-CA fr-CH nl-BE pt-BR pt-PT zh-Hans zh-Hant".split(
    " ",
  );

let icuScripts: Intl.DisplayNames | undefined;

type Languages = {
  namesByCode: Map<string, string>;
  codesByName: Map<string, string>;
  codesByAlias: Map<string, string>;
  namesByAlias: Map<string, string>;
  scriptsByName: Map<string, string>;
};

const languages = cachedTables(
  [import.meta.url, ...["./countries.ts", "../gazetteer/fold-name.ts"].map((file) => import.meta.resolve(file))],
  readLanguages,
);

type Language = { name: string; code: string };

/**
 * Reads a language by its English name, its own name or its BCP 47 code: `Deutsch` → `{name: "German", code: "de"}`,
 * `pt-BR` → `{name: "Portuguese (Brazil)", code: "pt-BR"}`. Reading a returned name gives the same language again.
 * For an unknown language, returns a sentence for the caller that says what was expected.
 */
export function readLanguage(text: string): Language | { problem: string } {
  const known = languages.codesByName.get(text);
  if (known !== undefined) return { name: text, code: known };
  if (text.length > nameCharactersMax) return { problem: unknownLanguage(text) };
  const code = languages.codesByAlias.get(foldName(text)) ?? codeOfTag(text.trim()) ?? codeOfQualifiedName(text);
  if (code === undefined) return { problem: unknownLanguage(text) };
  return { name: languages.namesByCode.get(code) ?? qualifiedName(code), code };
}

/** Every language with its canonical name and its name in itself: `German`, `Deutsch`. */
export function listLanguages(): { name: string; ownName: string }[] {
  const { namesByCode } = languages;
  return [...namesByCode.keys(), ...dialects].map((code) => {
    const name = namesByCode.get(code) ?? qualifiedName(code);
    return { name, ownName: iso6391.getNativeName(code) || nameIn(code, code) };
  });
}

/** The BCP 47 code of a canonical language name, as in a Query. */
export function languageCodeOf(name: string): string {
  const language = readLanguage(name);
  if ("problem" in language) throw new Error("The language of a query must be canonical, but this one is unknown.");
  return language.code;
}

/**
 * Each language gets its first name that is not taken: ICU calls both `ak` and `tw` Akan, and `Ga` is also the code of Irish.
 * Other English names take precedence over own names. A name that two languages share (`isiNdebele`) belongs to neither.
 */
function readLanguages(): Languages {
  const icuNames = new Intl.DisplayNames("en", { type: "language", fallback: "none" });
  /** `UK English` instead of `British English`. */
  const icuShortNames = new Intl.DisplayNames("en", { type: "language", style: "short" });
  const codes = [...iso6391.getAllCodes(), ...threeLetterCodes.split(" ")].filter(
    (code) => canonicalTag(code) === code,
  );
  const codesByAlias = new Map(codes.map((code) => [code, code]));
  const read: Languages = {
    namesByCode: new Map(),
    codesByName: new Map(),
    codesByAlias,
    namesByAlias: new Map(),
    scriptsByName: new Map(namedScripts.map((code) => [foldName(scriptName(code)), code])),
  };
  for (const code of codes) {
    const candidates = [icuNames.of(code) ?? "", iso6391.getName(code), code];
    const name =
      candidates.find((candidate) => (codesByAlias.get(foldName(candidate)) ?? code) === code && candidate !== "") ??
      code;
    read.namesByCode.set(code, name);
    read.codesByName.set(name, code);
    codesByAlias.set(foldName(name), code);
    read.namesByAlias.set(foldName(name), name);
  }
  const twoLetterCodes = iso6391.getAllCodes().map((code) => [code, canonicalTag(code) ?? code] as const);
  addAliases(read, [
    ...twoLetterCodes.map(([code, tag]) => [iso6391.getName(code), tag] as const),
    ...dialects.map((tag) => [icuNames.of(tag) ?? "", tag] as const),
  ]);
  addAliases(read, [
    ...iso6392.flatMap(({ name, iso6391: two, iso6392B: three }) => {
      const tag = canonicalTag(two ?? three) ?? "";
      return read.namesByCode.has(tag) ? name.split(";").map((part) => [part, tag] as const) : [];
    }),
    ...additionalNames,
    ...dialects.map((tag) => [icuShortNames.of(tag) ?? "", tag] as const),
  ]);
  addAliases(read, [
    ...twoLetterCodes.map(([code, tag]) => [iso6391.getNativeName(code), tag] as const),
    ...codes.map((code) => [nameIn(code, code), code] as const),
    // `简体中文` in its own script, and `繁体中文` as readers of the other script write it.
    ...dialects.flatMap((tag) => [tag, tag.slice(0, 2)].map((reader) => [nameIn(reader, tag), tag] as const)),
  ]);
  return read;
}

/** English is the fallback if ICU does not know the reader's language. ICU's own fallback is the language of the machine. */
function nameIn(reader: string, code: string): string {
  return new Intl.DisplayNames([reader, "en"], { type: "language" }).of(code) ?? "";
}

function addAliases(read: Languages, aliases: readonly (readonly [name: string, tag: string])[]): void {
  const owners = new Map<string, Set<string>>();
  for (const [name, tag] of aliases) owners.set(foldName(name), (owners.get(foldName(name)) ?? new Set()).add(tag));
  for (const [key, [tag = "", ...others]] of owners) {
    if (key === "" || others.length > 0 || read.codesByAlias.has(key)) continue;
    read.codesByAlias.set(key, tag);
    read.namesByAlias.set(key, read.namesByCode.get(tag) ?? qualifiedName(tag, read.namesByCode));
  }
}

/** The canonical form of a tag of known language, script and region. Tags with extensions or variants are refused: a search cannot use them. */
function codeOfTag(text: string): string | undefined {
  // POSIX and Java write `pt_BR`.
  const tag = text.length <= tagCharactersMax ? canonicalTag(text.replaceAll("_", "-")) : undefined;
  if (tag === undefined) return undefined;
  const { language, script, region } = new Intl.Locale(tag);
  const isKnown =
    languages.namesByCode.has(language) &&
    (script === undefined || icuScript(script) !== undefined) &&
    (region === undefined || regionName(region) !== undefined);
  return isKnown && tag === [language, script, region].filter((part) => part !== undefined).join("-") ? tag : undefined;
}

/** `Chinese (Traditional, Hong Kong)` → `zh-Hant-HK`. */
function codeOfQualifiedName(text: string): string | undefined {
  const [, base = "", qualifiers = ""] = /^([^()]+)\((.+)\)$/.exec(text.trim()) ?? [];
  const code = languages.codesByAlias.get(foldName(base));
  if (code === undefined) return undefined;
  const parts = qualifiers
    .split(",")
    .map((part) => languages.scriptsByName.get(foldName(part)) ?? scriptCode(part) ?? regionCode(part));
  return parts.includes(undefined) ? undefined : codeOfTag([code, ...parts].join("-"));
}

function qualifiedName(tag: string, namesByCode = languages.namesByCode): string {
  const { language, script, region } = new Intl.Locale(tag);
  const qualifiers = [
    script === undefined ? undefined : scriptName(script),
    region === undefined ? undefined : regionName(region),
  ].filter((part) => part !== undefined);
  return `${namesByCode.get(language) ?? language} (${qualifiers.join(", ")})`;
}

/** The first script costs the time that ICU takes to load names, which most processes never need. */
function icuScript(code: string): string | undefined {
  icuScripts ??= new Intl.DisplayNames("en", { type: "script", fallback: "none" });
  return icuScripts.of(code);
}

function scriptName(code: string): string {
  return namedScripts.includes(code) ? (icuScript(code) ?? code) : code;
}

function scriptCode(text: string): string | undefined {
  const code = text.trim();
  return /^[A-Z][a-z]{3}$/.test(code) && icuScript(code) !== undefined ? code : undefined;
}

function regionName(code: string): string | undefined {
  return code === latinAmerica.code ? latinAmerica.name : countryName(code);
}

function regionCode(text: string): string | undefined {
  return latinAmerica.names.includes(foldName(text)) ? latinAmerica.code : countryCodeByName(text);
}

function canonicalTag(text: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(text)[0];
  } catch {
    return undefined; // Intl throws for anything but a tag, which includes most words that a person types.
  }
}

function unknownLanguage(text: string): string {
  const shown = truncate(text);
  const spoken = languageOfCountry(shown);
  const suggestion = didYouMean(spoken ? [spoken] : closestNames(foldName(shown), languages.namesByAlias));
  return `Unknown language "${shown}". Expected a language such as "German", "Deutsch" or "de".${suggestion}`;
}

/** The language that most people of a country speak, by the country's code or name, which some send instead: `jp` → `Japanese`. */
function languageOfCountry(text: string): string | undefined {
  const country = countryCodeByName(text);
  return country && languages.namesByCode.get(new Intl.Locale(`und-${country}`).maximize().language);
}
