import { googleCountryName } from "../query/countries.ts";
import { countryOf } from "../query/locations.ts";

/** A canonical place as Google's list of places, which the providers go by, spells its country: `Izmir,Turkiye`. */
export function googleLocationName(location: string): string {
  const finer = location.split(",").slice(0, -1);
  return [...finer, googleCountryName(countryOf(location))].join(",");
}
