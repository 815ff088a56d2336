import { LRUCache } from "lru-cache";

/**
 * The languages of Google's own pages, by its codes, as SerpApi publishes the list (engines/google.json of
 * github.com/serpapi/serpapi-mcp) without the joke languages and the codes that name no language.
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

/** What Google called a language before BCP 47 did, or calls several by: for lists that lack the newer or finer code. */
const olderCodes = new Map([
  ["fil", "tl"],
  ["jv", "jw"],
  ["nb", "no"],
  ["nn", "no"],
  ["sr-Latn", "sh"],
]);

/** Made once for a language, since every search asks for them twice. */
const codesByLanguage = new LRUCache<string, string[]>({ max: 1_000, memoMethod: codesOf });

/** Whether a language (BCP 47) can be searched in where these codes are listed. */
export function isLanguageListed(languageCode: string, listed: ReadonlySet<string>): boolean {
  return codesByLanguage.memo(languageCode).some((code) => listed.has(code));
}

/**
 * The code that stands for a language (BCP 47) in a list of Google's: with its region only where that is listed, so `en-GB` is
 * `en`. Chinese goes by region and not by script, `zh-HK` by the one that writes as Hong Kong does.
 * A language that is not listed never gets here: `can.language` keeps it away.
 */
export function googleLanguageCode(languageCode: string, listed: ReadonlySet<string>): string {
  const code = codesByLanguage.memo(languageCode).find((each) => listed.has(each));
  if (code === undefined) throw new Error("The provider was asked for a language that it does not list.");
  return code;
}

/** The codes that a language may be listed by, the finest first. In another script than its usual one it is another language. */
function codesOf(languageCode: string): string[] {
  const { language, region } = new Intl.Locale(languageCode);
  const script = scriptOf(languageCode);
  if (language === "zh") return [script === "Hant" ? "zh-TW" : "zh-CN"];
  const inRegion = `${language}-${region ?? ""}`;
  const anywhere = script === scriptOf(language) ? language : `${language}-${script}`;
  const older = olderCodes.get(anywhere);
  return [
    ...(region !== undefined && script === scriptOf(inRegion) ? [inRegion] : []),
    anywhere,
    ...(older === undefined ? [] : [older]),
  ];
}

/** The one that is told, or else the usual one. */
function scriptOf(languageCode: string): string {
  return new Intl.Locale(languageCode).maximize().script ?? "";
}
