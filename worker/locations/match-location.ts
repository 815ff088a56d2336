import { foldLocationPart } from "../../shared/gazetteer/fold-name.ts";
import { subdivisionsByCode } from "../../shared/query/subdivisions.ts";
import type { ListedLocation } from "./listed-location.ts";

/** A location of a query, split for the comparison with a list. */
export type TypedLocation = {
  countryCode: string;
  /** City and region as in the query: `Munich,Bavaria`. */
  cityAndRegion: string;
  /** Each of them, folded: what the caller means, then what it is in. */
  parts: string[];
};

type Row = Pick<ListedLocation, "name" | "folded" | "isMarket">;

export function toTypedLocation(cityAndRegion: string, countryCode: string): TypedLocation {
  return { countryCode, cityAndRegion, parts: cityAndRegion.split(",").map(foldLocationPart) };
}

/**
 * The rows that a typed location may mean. One row means that: its full name wins, `New York,United States` is the state;
 * otherwise the typed parts must all be in the name, in their order: `Munich` means `Munich,Bavaria` unless there is a second
 * Munich in the country. Several rows mean that the caller has to say more: no row is preferred.
 * @param rows the rows of the country that begin with the first typed part.
 */
export function matchLocation(typed: TypedLocation, rows: readonly Row[]): Row[] {
  const folded = typed.parts.join(",");
  const sameName = rows.filter((row) => row.folded === folded);
  if (sameName.length > 0) return bySpelling(typed, sameName);
  const [first = "", ...regions] = typed.parts;
  const accepted = regions.map((region) => new Set([region, ...regionOfCode(region, typed.countryCode)]));
  return rows.filter((row) => {
    const [name, ...within] = row.folded.split(",");
    return !row.isMarket && name === first && hasInOrder(within, accepted);
  });
}

/** Names that differ only in accents or case: the exact spelling tells them apart. */
function bySpelling({ cityAndRegion }: TypedLocation, rows: Row[]): Row[] {
  const exact = rows.filter(({ name }) => name.startsWith(`${cityAndRegion},`));
  return exact.length === 1 ? exact : rows;
}

function hasInOrder(parts: readonly string[], accepted: readonly ReadonlySet<string>[]): boolean {
  let found = 0;
  for (const part of parts) if (accepted[found]?.has(part)) found += 1;
  return found === accepted.length;
}

/** The name of a region by its code in this country: `tx` in the United States → `texas`. */
function regionOfCode(region: string, countryCode: string): string[] {
  return subdivisionsByCode(`${countryCode.toLowerCase()} ${region}`).map((name) =>
    foldLocationPart(name.slice(0, name.lastIndexOf(","))),
  );
}
