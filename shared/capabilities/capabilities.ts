import type { ProviderName } from "../config.ts";
import { languageCodeOf } from "../query/languages.ts";
import { countryOf, isFinerThanCountry } from "../query/locations.ts";
import type { Query } from "../query/query.ts";
import { dataForSeoLanguages } from "./dataforseo-languages.ts";
import { googleLanguages, isLanguageListed } from "./google-languages.ts";
import { canSearxngSearchIn } from "./searxng-languages.ts";

/** The queries that a provider can honour. Others are never sent to it. */
export interface Capabilities {
  mobile: boolean;
  /** Whether it searches from a place within a country, such as a city. */
  city: boolean;
  /** Whether it searches in a language (BCP 47) from a country (ISO 3166-1, upper case). Absent: in all, from everywhere. */
  language?: (languageCode: string, countryCode: string) => boolean;
}

const listedIn = (languages: ReadonlySet<string>) => (languageCode: string) =>
  isLanguageListed(languageCode, languages);

/** The capabilities of all providers. The API reads them too, which has neither keys nor adapters. */
export const capabilities = {
  sandbox: { mobile: true, city: true },
  serpapi: { mobile: true, city: true, language: listedIn(googleLanguages) },
  serper: { mobile: false, city: true, language: listedIn(googleLanguages) },
  searxng: { mobile: false, city: false, language: canSearxngSearchIn },
  dataforseo: { mobile: true, city: true, language: listedIn(dataForSeoLanguages) },
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
  // If each field alone is supported, but not all of them by one provider, the device is the smallest change.
  return isLocation && !isDevice ? "location" : "device";
}

function canSearchLanguage(can: Capabilities, { language, location }: Query): boolean {
  return can.language?.(languageCodeOf(language), countryOf(location)) ?? true;
}
