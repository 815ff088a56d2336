import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { foldLocationPart } from "../../shared/gazetteer/fold-name.ts";
import { insertInBatches, type RecordList, replaceList, type StoredList } from "./stored-lists.ts";

/** The names of cities in all languages, from GeoNames: table `place_names`. */

/** The name under which they are among the stored lists. */
export const placeNamesList = "geonames";

/** No city has more names, and no country has more cities of one name. */
const otherNamesMax = 500;
/** A folded name is compared with what callers send, which is not longer. */
const nameCharactersMax = 255;
/** The columns of a row that we read, and how many a row has: https://download.geonames.org/export/dump/readme.txt */
const column = { placeId: 0, name: 1, asciiName: 2, alternateNames: 3, countryCode: 8 };
const columns = 19;
/** The codes of airports are among the alternate names. */
const airportCode = /^[A-Z]{3,4}$/;

type PlaceName = { placeId: number; countryCode: string; folded: string };

/** A file of GeoNames as its names. @returns undefined if a row is not one of such a file. */
export function readPlaceNames(file: string): { places: number; names: PlaceName[] } | undefined {
  const lines = file.split("\n").filter((line) => line !== "");
  const names: PlaceName[] = [];
  for (const line of lines) {
    const cells = line.split("\t");
    const placeId = Number(cells[column.placeId]);
    const countryCode = cells[column.countryCode] ?? "";
    if (cells.length !== columns || !Number.isSafeInteger(placeId) || !/^[A-Z]{2}$/.test(countryCode)) return undefined;
    for (const folded of foldedNames(cells)) names.push({ placeId, countryCode, folded });
  }
  return { places: lines.length, names };
}

function foldedNames(cells: readonly string[]): Set<string> {
  const alternates = (cells[column.alternateNames] ?? "").split(",").filter((name) => !airportCode.test(name));
  const all = [cells[column.name] ?? "", cells[column.asciiName] ?? "", ...alternates].map(foldLocationPart);
  return new Set(all.filter((name) => name !== "" && name.length <= nameCharactersMax && name.isWellFormed()));
}

/** Replaces all names in one transaction. The old ones stay in force until it commits. */
export async function storePlaceNames(
  database: Database,
  { places, names }: { places: number; names: readonly PlaceName[] },
  options: { onProgress: (stored: number) => Promise<void> | void; record?: RecordList | undefined },
): Promise<StoredList> {
  return replaceList(database, placeNamesList, {
    size: places,
    record: options.record,
    insert: async (query) => {
      await query("delete from place_names", []);
      await insertInBatches(names, options.onProgress, (batch) =>
        query(
          `insert into place_names (place_id, country_code, folded)
           select * from json_to_recordset($1) r ("placeId" bigint, "countryCode" text, folded text)`,
          [JSON.stringify(batch)],
        ),
      );
    },
  });
}

const nameRow = z.object({ folded: z.string() });

/** All names, folded, of the cities of a country that have this folded name. Empty without stored names. */
export async function findOtherNames(
  database: Database,
  { countryCode, firstPart }: { countryCode: string; firstPart: string },
): Promise<string[]> {
  const { rows } = await database.query({
    name: "find_other_names",
    text: `select distinct other.folded from place_names known join place_names other using (place_id)
           where known.country_code = $1 and known.folded = $2 limit ${otherNamesMax}`,
    values: [countryCode, firstPart],
  });
  return rows.map((row) => nameRow.parse(row).folded);
}
