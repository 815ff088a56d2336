import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf, valuesOf } from "../../shared/database/row.ts";
import { inLongTransaction, type Querying } from "../../shared/database/transaction.ts";
import type { ListedLocation } from "./listed-location.ts";

/** The providers' lists of locations in Postgres: tables `location_lists` and `locations`. */

/** Rows that one statement inserts: a tenth of a second's work. */
const rowsPerInsert = 10_000;
/** Another refresh of the list, which takes seconds for 200,000 rows, is waited for. */
const waiting = ["lock_timeout = 60000"];
/** More places of one name are in no country. */
const namesakesMax = 500;
/** More names with one initial are in no country's list. */
const neighborsMax = 20_000;
/** Sorts after every letter. */
const lastCharacter = "\u{10ffff}";

const listRow = rowOf({ provider: z.string(), locations: z.number(), refreshedAt: z.date() });
export type StoredList = z.infer<typeof listRow>;
export type StoredLocation = ListedLocation & { provider: string };
type Named = { countryCode: string; firstPart: string };

const locationRow = rowOf({
  provider: z.string(),
  countryCode: z.string(),
  folded: z.string(),
  name: z.string(),
  isMarket: z.boolean(),
});

const selectLists = "select provider, locations, refreshed_at from location_lists";

export async function readStoredLists(database: Database): Promise<StoredList[]> {
  const { rows } = await database.query(`${selectLists} order by provider`);
  return rows.map((row) => listRow.parse(row));
}

/** Records a change of a list in its transaction, with the list as it was and as it is. */
export type RecordList = (
  transaction: Querying,
  change: { before: StoredList | undefined; after: StoredList | undefined },
) => Promise<void>;

/**
 * Replaces the list of a provider in one transaction. The old list stays in force until it commits. Two refreshes of one list
 * run one after the other.
 */
export async function storeList(
  database: Database,
  provider: string,
  list: {
    locations: readonly ListedLocation[];
    onProgress: (stored: number) => Promise<void> | void;
    record?: RecordList | undefined;
  },
): Promise<StoredList> {
  const { locations, onProgress, record } = list;
  return inLongTransaction(database, waiting, async (query, transaction) => {
    const { rows: replaced } = await query(`${selectLists} where provider = $1 for update`, [provider]);
    const { rows } = await query(
      `insert into location_lists (provider, locations) values ($1, $2)
       on conflict (provider) do update set locations = excluded.locations, refreshed_at = clock_timestamp()
       returning provider, locations, refreshed_at`,
      [provider, locations.length],
    );
    await query("delete from locations where provider = $1", [provider]);
    for (let start = 0; start < locations.length; start += rowsPerInsert) {
      const batch = locations.slice(start, start + rowsPerInsert);
      await query(
        `insert into locations (provider, country_code, folded, name, is_market)
         select $1, r.* from json_to_recordset($2) r ("countryCode" text, folded text, name text, "isMarket" boolean)`,
        [provider, JSON.stringify(batch)],
      );
      await onProgress(start + batch.length);
    }
    const [before, after] = [replaced[0] && listRow.parse(replaced[0]), listRow.parse(rows[0])];
    await record?.(transaction, { before, after });
    return after;
  });
}

/** @returns whether there was a list. */
export async function removeList(database: Database, provider: string, record?: RecordList): Promise<boolean> {
  return inLongTransaction(database, waiting, async (query, transaction) => {
    const { rows } = await query(`${selectLists} where provider = $1 for update`, [provider]);
    if (!rows[0]) return false;
    await query("delete from location_lists where provider = $1", [provider]);
    await record?.(transaction, { before: listRow.parse(rows[0]), after: undefined });
    return true;
  });
}

/** The locations of a country whose names begin with one of these folded parts, in all lists of these providers. */
export async function findNamesakes(
  database: Database,
  providers: readonly string[],
  { countryCode, firstParts }: { countryCode: string; firstParts: readonly string[] },
): Promise<StoredLocation[]> {
  const { rows } = await database.query({
    name: "find_namesakes",
    // A name ends, or continues after a comma. All that continue sort between that comma and the next character.
    text: `select l.* from unnest($3::text[]) part
           cross join lateral (
             select provider, country_code, folded, name, is_market from locations
             where provider = any($1) and country_code = $2
               and (folded = part or (folded >= part || ',' and folded < part || '-'))
             limit ${namesakesMax}) l
           order by l.folded, l.name limit ${namesakesMax}`,
    values: [providers, countryCode, firstParts],
  });
  return rows.map((row) => locationRow.parse(row));
}

/** The first parts of all names in a country that begin with the same letter, folded. */
export async function findFirstParts(
  database: Database,
  providers: readonly string[],
  { countryCode, firstPart }: Named,
): Promise<string[]> {
  const [initial = ""] = firstPart;
  const { rows } = await database.query(
    `select distinct split_part(folded, ',', 1) as first_part from locations
     where provider = any($1) and country_code = $2 and folded >= $3 and folded < $4 limit ${neighborsMax}`,
    [providers, countryCode, initial, `${initial}${lastCharacter}`],
  );
  return valuesOf(z.string(), rows);
}
