import type { ProviderName } from "../config.ts";
import { languageCodeOf } from "../query/languages.ts";
import { countryOf, isFinerThanCountry } from "../query/locations.ts";
import type { Query } from "../query/query.ts";
import { googleLanguages, isLanguageListed } from "./google-languages.ts";

/** The queries that a provider can honour. Others are never sent to it. */
export interface Capabilities {
  mobile: boolean;
  /** Whether it searches from a place within a country, such as a city. */
  city: boolean;
  /** Whether it searches in a language (BCP 47) from a country (ISO 3166-1, upper case). Absent: in all, from everywhere. */
  language?: (languageCode: string, countryCode: string) => boolean;
}

/** Accepted values of `language_code`, as of 2025. GET /v3/serp/google/languages returns the current list for free. */
export const dataForSeoLanguages: ReadonlySet<string> = new Set(
  `
  ach af ak am ar az ban be bem bg bn bs ca ceb ckb crs cs da de ee el en es es-419 et eu fa fi fil fo fr fy ga
  gaa gl gu ha he hi hr ht hu hy id ig is it iw ja ka kg kk km kn ko kri ky lg ln lo loz lt lua lv mfe mg mi mk ml
  mn mr ms mt my ne nl no nso ny nyn om pa pcm pl ps pt pt-BR pt-PT qu rm rn ro ru rw sd si sk sl sn so sq sr
  sr-Latn sr-ME st sv sw ta te tg th ti tk tl tn to tr tum uk ur uz vi wo xh yo zh-CN zh-TW zu
`
    .trim()
    .split(/\s+/),
);

const listedIn = (languages: ReadonlySet<string>) => (languageCode: string) =>
  isLanguageListed(languageCode, languages);

/** The capabilities of all providers. The API, which has neither keys nor adapters, reads them too. */
export const capabilities = {
  sandbox: { mobile: true, city: true },
  serpapi: { mobile: true, city: true, language: listedIn(googleLanguages) },
  serper: { mobile: false, city: true, language: listedIn(googleLanguages) },
  searxng: { mobile: false, city: false, language: canSearxngSearchIn },
  dataforseo: { mobile: true, city: true, language: listedIn(dataForSeoLanguages) },
  searchapi: { mobile: true, city: true, language: listedIn(googleLanguages) },
} satisfies Record<ProviderName, Capabilities>;

export function canHonour(can: Capabilities, query: Query): boolean {
  if (query.device === "mobile" && !can.mobile) return false;
  if (isFinerThanCountry(query.location) && !can.city) return false;
  return canSearchLanguage(can, query);
}

/** The field to change in a query that none of these providers can honour. Undefined if one can. */
export function unsupportedField(
  providers: readonly Capabilities[],
  query: Query,
): "device" | "location" | "language" | undefined {
  if (providers.some((can) => canHonour(can, query))) return undefined;
  const isDevice = query.device === "mobile" && !providers.some((can) => can.mobile);
  const isLocation = isFinerThanCountry(query.location) && !providers.some((can) => can.city);
  const isLanguage = !providers.some((can) => canSearchLanguage(can, query));
  if (isLanguage && !isDevice && !isLocation) return "language";
  // If each field alone is supported, but not all of them by one provider, the device is the smallest change, unless it is the default.
  return isDevice || (!isLocation && query.device === "mobile") ? "device" : "location";
}

function canSearchLanguage(can: Capabilities, { language, location }: Query): boolean {
  return can.language?.(languageCodeOf(language), countryOf(location)) ?? true;
}

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
function canSearxngSearchIn(languageCode: string, countryCode: string): boolean {
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
