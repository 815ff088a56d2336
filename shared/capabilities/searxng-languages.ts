/** The languages that Google can restrict pages to, by SearXNG's codes. For any other, SearXNG silently searches in English. */
const languages = new Set(
  "af ar be bg ca cs da de el en eo es et fa fi fil fr he hi hr hu hy id is it ja ko lt lv nb nl pl pt ro ru sk sl sr sv sw th tr uk vi zh".split(
    " ",
  ),
);
/** The script of a Chinese search follows from the country. SearXNG knows it for these countries. */
const chineseScripts = new Map([
  ["CN", "Hans"],
  ["SG", "Hans"],
  ["HK", "Hant"],
  ["MO", "Hant"],
  ["TW", "Hant"],
]);

/**
 * Language and country share one parameter (`de-AT`), so it cannot express the dialect of another country, or a script other
 * than the country's.
 */
export function canSearxngSearchIn(languageCode: string, countryCode: string): boolean {
  const { script, region } = new Intl.Locale(languageCode);
  const base = baseLanguage(languageCode);
  if (!languages.has(base) || (region !== undefined && region !== countryCode)) return false;
  if (base !== "zh") return script === undefined;
  return chineseScripts.get(countryCode) === (script ?? new Intl.Locale(languageCode).maximize().script);
}

/** SearXNG knows Norwegian only as Bokmål. Google does not distinguish the two written forms. */
export function baseLanguage(languageCode: string): string {
  const { language } = new Intl.Locale(languageCode);
  return language === "no" || language === "nn" ? "nb" : language;
}
