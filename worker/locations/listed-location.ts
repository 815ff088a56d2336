import { foldLocationPart } from "../../shared/gazetteer/fold-name.ts";

/** One row of a provider's list, as the provider sends it. */
export type LocationRow = { name: string; countryCode: string; type: string };

/** One city or region of a provider's list. */
export type ListedLocation = {
  /** As the provider spells it: `Munich,Bavaria,Germany`. */
  name: string;
  countryCode: string;
  /** City and region, folded, without the country: `munich,bavaria`. */
  folded: string;
  /** An advertising market, named after its city. It is meant only by its full name. */
  isMarket: boolean;
};

/** The longest location that a caller can send. */
const nameCharactersMax = 255;
const marketTypes = new Set(["DMA Region", "TV Region"]);
const countryType = "Country";
/** These have no place in a name, and could change what an operator or a caller sees around it. */
const unprintable = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/u;
/** Google separates the parts of a name by a comma alone. A comma within a part is followed by a space: `Austin, TX,Texas`. */
const lastPart = /,(?! )(?!.*,(?! )).*$/;

/** A city or region of a list; undefined for a country, and for a row that is not usable as a name. */
export function toListedLocation({ name, countryCode, type }: LocationRow): ListedLocation | undefined {
  const isUsable = name.length <= nameCharactersMax && name.isWellFormed() && !unprintable.test(name);
  if (!isUsable || type === countryType || !/^[A-Z]{2}$/.test(countryCode)) return undefined;
  const cityAndRegion = withoutCountry(name);
  if (cityAndRegion === "") return undefined;
  const parts = cityAndRegion.split(",").map(foldLocationPart);
  if (parts.includes("")) return undefined;
  return { name, countryCode, folded: parts.join(","), isMarket: marketTypes.has(type) };
}

/** The parts of a name before its country: `Munich,Bavaria`; "" for a name of one part. */
export const withoutCountry = (name: string): string => (lastPart.test(name) ? name.replace(lastPart, "") : "");
