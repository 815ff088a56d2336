import { googleCountryName } from "../../shared/query/countries.ts";
import { countryOf } from "../../shared/query/locations.ts";
import type { ProviderQuery } from "./provider.ts";

/**
 * The name by which a location is sent: the one in the provider's own list, or else the canonical location, its country
 * spelled as in Google's list, which the providers use: `Izmir,Turkiye`.
 */
export function googleLocationName({
  location,
  listedLocation,
}: Pick<ProviderQuery, "location" | "listedLocation">): string {
  const cityAndRegion = location.split(",").slice(0, -1);
  return listedLocation ?? [...cityAndRegion, googleCountryName(countryOf(location))].join(",");
}
