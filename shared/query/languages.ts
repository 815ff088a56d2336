import iso6391 from "iso-639-1";
import { iso6392 } from "iso-639-2/2.js";
import { countryCodeByName, countryName } from "./countries.ts";
import { truncate, closestNames, didYouMean, foldName } from "./fuzzy-match.ts";

/** Longer than any name of a language, with script and region. */
const nameCharactersMax = 120;
/** Longer than any tag of language, script and region. */
const tagCharactersMax = 16;

const latinAmerica = { code: "419", name: "Latin America", names: ["latin america", "latinoamerica"] };
/** Usual names that none of the lists has. */
const unlisted = [
  ["Farsi", "fa"],
  ["Mandarin", "zh"],
] as const;
/** Languages without a code of two letters that people search in; their names come from ICU. */
const threeLetterCodes =
  "ach ast bem bho ceb chr ckb crs fil fur gaa gsw haw hmn ilo kab kok kri loz lua luo mai mfe mni nds nso nyn pap pcm scn srn sco tum war yue";
/** Scripts that a language is told by in words, `Chinese (Traditional)`; others go by their code, `Serbian (Glag)`. */
const usualScripts = ["Arab", "Cyrl", "Deva", "Hans", "Hant", "Latn"];
/** Tags for which people have a name of their own: `Brazilian Portuguese`, `Simplified Chinese`. The names come from ICU. */
const dialects =
  "de-AT de-CH en-AU en-CA en-GB en-US es-419 es-ES es-MX fa-AF fr-CA fr-CH nl-BE pt-BR pt-PT zh-Hans zh-Hant".split(
    " ",
  );

const icuNames = new Intl.DisplayNames("en", { type: "language", fallback: "none" });
/** `UK English` where the long name is `British English`. */
const icuShortNames = new Intl.DisplayNames("en", { type: "language", style: "short" });
const icuScripts = new Intl.DisplayNames("en", { type: "script", fallback: "none" });

const codes = [...iso6391.getAllCodes(), ...threeLetterCodes.split(" ")].filter((code) => canonicalTag(code) === code);
const namesByCode = new Map<string, string>();
const codesByName = new Map<string, string>();
const codesByAlias = new Map<string, string>(codes.map((code) => [code, code]));
const namesByAlias = new Map<string, string>();
const scriptsByName = new Map(usualScripts.map((code) => [foldName(scriptName(code)), code]));
collectNames();
collectAliases();

export type Language = { name: string; code: string };

/**
 * Reads a language by its English name, its own name or its BCP 47 code: `Deutsch` → `{name: "German", code: "de"}`,
 * `pt-BR` → `{name: "Portuguese (Brazil)", code: "pt-BR"}`. A name that it returns always reads as the same language.
 * Where it cannot be read, a sentence that says what was expected.
 */
export function readLanguage(text: string): Language | { problem: string } {
  const known = codesByName.get(text);
  if (known !== undefined) return { name: text, code: known };
  if (text.length > nameCharactersMax) return { problem: unknownLanguage(text) };
  const code = codesByAlias.get(foldName(text)) ?? codeOfTag(text.trim()) ?? codeOfQualifiedName(text);
  if (code === undefined) return { problem: unknownLanguage(text) };
  return { name: namesByCode.get(code) ?? qualifiedName(code), code };
}

/** The BCP 47 code of a canonical language name, as in a Query. */
export function languageCodeOf(name: string): string {
  const language = readLanguage(name);
  if ("problem" in language) throw new Error("The language of a query is canonical, but this one is unknown.");
  return language.code;
}

/** `ak` and `tw` are both Akan to ICU, and `Ga` would read as the code of Irish: the first name that is free is taken. */
function collectNames(): void {
  for (const code of codes) {
    const candidates = [icuNames.of(code) ?? "", iso6391.getName(code), code];
    const name = candidates.find(
      (candidate) => (codesByAlias.get(foldName(candidate)) ?? code) === code && candidate !== "",
    );
    namesByCode.set(code, name ?? code);
    codesByName.set(name ?? code, code);
    codesByAlias.set(foldName(name ?? code), code);
    namesByAlias.set(foldName(name ?? code), name ?? code);
  }
}

/** Other English names come before own names, and a name that two languages share (`isiNdebele`) belongs to neither. */
function collectAliases(): void {
  const twoLetterCodes = iso6391.getAllCodes().map((code) => [code, canonicalTag(code) ?? code] as const);
  addAliases([
    ...twoLetterCodes.map(([code, tag]) => [iso6391.getName(code), tag] as const),
    ...dialects.map((tag) => [icuNames.of(tag) ?? "", tag] as const),
  ]);
  addAliases([
    ...iso6392.flatMap(({ name, iso6391: two, iso6392B: three }) => {
      const tag = canonicalTag(two ?? three) ?? "";
      return namesByCode.has(tag) ? name.split(";").map((part) => [part, tag] as const) : [];
    }),
    ...unlisted,
    ...dialects.map((tag) => [icuShortNames.of(tag) ?? "", tag] as const),
  ]);
  addAliases([
    ...twoLetterCodes.map(([code, tag]) => [iso6391.getNativeName(code), tag] as const),
    ...codes.map((code) => [nameIn(code, code), code] as const),
    // `简体中文` in itself, `繁体中文` as the other script's readers write it.
    ...dialects.flatMap((tag) => [tag, tag.slice(0, 2)].map((reader) => [nameIn(reader, tag), tag] as const)),
  ]);
}

/** English where ICU does not know the reader's language: it would take the machine's. */
function nameIn(reader: string, code: string): string {
  return new Intl.DisplayNames([reader, "en"], { type: "language" }).of(code) ?? "";
}

function addAliases(aliases: readonly (readonly [name: string, tag: string])[]): void {
  const owners = new Map<string, Set<string>>();
  for (const [name, tag] of aliases) owners.set(foldName(name), (owners.get(foldName(name)) ?? new Set()).add(tag));
  for (const [key, [tag = "", ...others]] of owners) {
    if (key === "" || others.length > 0 || codesByAlias.has(key)) continue;
    codesByAlias.set(key, tag);
    namesByAlias.set(key, namesByCode.get(tag) ?? qualifiedName(tag));
  }
}

/** The canonical form of a tag of a known language, script and region; extensions and variants mean nothing to a search. */
function codeOfTag(text: string): string | undefined {
  // `pt_BR` is how POSIX and Java write it.
  const tag = text.length <= tagCharactersMax ? canonicalTag(text.replaceAll("_", "-")) : undefined;
  if (tag === undefined) return undefined;
  const { language, script, region } = new Intl.Locale(tag);
  const isKnown =
    namesByCode.has(language) &&
    (script === undefined || icuScripts.of(script) !== undefined) &&
    (region === undefined || regionName(region) !== undefined);
  return isKnown && tag === [language, script, region].filter((part) => part !== undefined).join("-") ? tag : undefined;
}

/** `Chinese (Traditional, Hong Kong)` → `zh-Hant-HK`. */
function codeOfQualifiedName(text: string): string | undefined {
  const [, base = "", qualifiers = ""] = /^([^()]+)\((.+)\)$/.exec(text.trim()) ?? [];
  const code = codesByAlias.get(foldName(base));
  if (code === undefined) return undefined;
  const parts = qualifiers
    .split(",")
    .map((part) => scriptsByName.get(foldName(part)) ?? scriptCode(part) ?? regionCode(part));
  return parts.includes(undefined) ? undefined : codeOfTag([code, ...parts].join("-"));
}

function qualifiedName(tag: string): string {
  const { language, script, region } = new Intl.Locale(tag);
  const qualifiers = [
    script === undefined ? undefined : scriptName(script),
    region === undefined ? undefined : regionName(region),
  ].filter((part) => part !== undefined);
  return `${namesByCode.get(language) ?? language} (${qualifiers.join(", ")})`;
}

function scriptName(code: string): string {
  return usualScripts.includes(code) ? (icuScripts.of(code) ?? code) : code;
}

function scriptCode(text: string): string | undefined {
  const code = text.trim();
  return /^[A-Z][a-z]{3}$/.test(code) && icuScripts.of(code) !== undefined ? code : undefined;
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
    return undefined; // It throws on what is no tag, as on most words that a person types.
  }
}

function unknownLanguage(text: string): string {
  const close = didYouMean(closestNames(foldName(truncate(text)), namesByAlias));
  return `Expected a language, as in "German", "Deutsch" or "de"; "${truncate(text)}" is none that we know.${close}`;
}
