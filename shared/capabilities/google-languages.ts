import { LRUCache } from "lru-cache";

/**
 * The codes of the languages that Google's own pages have, from SerpApi's list (engines/google.json of
 * github.com/serpapi/serpapi-mcp), without joke languages and codes that name no language.
 */
export const googleLanguages: ReadonlySet<string> = new Set(
  `
  ach af ak am ar az be bem bg bn br bs ca chr ckb co crs cs cy da de ee el en eo es es-419 et eu fa fi fo fr fy
  ga gaa gd gl gn gu ha haw he hi hr ht hu hy ia id ig is it iw ja jw ka kg kk kl km kn ko kri ku ky la lg ln lo
  loz lt lua lv mfe mg mi mk ml mn mr ms mt my ne nl nn no nso ny nyn oc om or pa pcm pl ps pt pt-BR pt-PT qu rm
  rn ro ru rw sd sh si sk sl sn so sq sr sr-ME st su sv sw ta te tg th ti tk tl tn to tr tt tum tw ug uk ur uz vi
  wo xh yi yo zh-CN zh-TW zu
`
    .trim()
    .split(/\s+/),
);

/** Google's older or broader code for a language (BCP 47), for lists that lack the newer or finer code. */
const olderCodes = new Map([
  ["fil", "tl"],
  ["jv", "jw"],
  ["nb", "no"],
  ["nn", "no"],
  ["sr-Latn", "sh"],
]);

/** Cached, because every search needs the codes of its language twice. */
const codesByLanguage = new LRUCache<string, string[]>({ max: 1_000, memoMethod: candidateCodes });

/** Whether a provider that lists these codes can search in a language (BCP 47). */
export function isLanguageListed(languageCode: string, listed: ReadonlySet<string>): boolean {
  return codesByLanguage.memo(languageCode).some((code) => listed.has(code));
}

/**
 * The code for a language (BCP 47) in a list of Google language codes. The region is kept only if the list has it: `en-GB`
 * becomes `en`. Chinese is listed by region instead of script: `zh-HK` becomes `zh-TW`, which has the same script.
 * @throws {Error} for a language that the list lacks; `can.language` keeps such a query away from the provider.
 */
export function googleLanguageCode(languageCode: string, listed: ReadonlySet<string>): string {
  const code = codesByLanguage.memo(languageCode).find((candidate) => listed.has(candidate));
  if (code === undefined) throw new Error("The provider does not list the language of this query.");
  return code;
}

/**
 * The codes under which a language may be listed, the most specific first. A language in an unusual script counts as a
 * different language, so its script is never dropped.
 */
function candidateCodes(languageCode: string): string[] {
  const { language, region } = new Intl.Locale(languageCode);
  const script = scriptOf(languageCode);
  if (language === "zh") return [script === "Hant" ? "zh-TW" : "zh-CN"];
  const inRegion = `${language}-${region ?? ""}`;
  const withoutRegion = script === scriptOf(language) ? language : `${language}-${script}`;
  const older = olderCodes.get(withoutRegion);
  return [
    ...(region !== undefined && script === scriptOf(inRegion) ? [inRegion] : []),
    withoutRegion,
    ...(older === undefined ? [] : [older]),
  ];
}

/** The script that the code names, or else the usual script of its language and region. */
const scriptOf = (languageCode: string): string => new Intl.Locale(languageCode).maximize().script ?? "";
