import { googleCountryName } from "../query/countries.ts";
import { countryOf } from "../query/locations.ts";

/** A canonical location, its country spelled as in Google's list of locations, which the providers use: `Izmir,Turkiye`. */
export function googleLocationName(location: string): string {
  const cityAndRegion = location.split(",").slice(0, -1);
  return [...cityAndRegion, googleCountryName(countryOf(location))].join(",");
}
