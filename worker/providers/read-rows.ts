import { z } from "zod";
import type { LocationRow } from "../locations/listed-location.ts";
import type { Failure } from "./provider.ts";

/** An object of an answer. None of its fields has been checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether it is an object and not a list. */
export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object itself; one without fields for any other value. */
export const toFields = (value: unknown): Fields => (isObject(value) ? value : {});

/**
 * Reads the rows of a list one by one, so that a page is not lost for one bad row.
 * @param read returns undefined for a row that it cannot read.
 * @returns what was read, and how many of the other rows hold something. Null, "" and {} hold nothing.
 */
export function readRows<Found>(
  rows: readonly unknown[],
  read: (row: unknown) => Found | undefined,
): { found: Found[]; unreadableRows: number } {
  const found: Found[] = [];
  let unreadableRows = 0;
  for (const row of rows) {
    const part = read(row);
    if (part !== undefined) found.push(part);
    else if (!holdsNothing(row)) unreadableRows += 1;
  }
  return { found, unreadableRows };
}

export function holdsNothing(row: unknown): boolean {
  return row === undefined || row === null || row === "" || (isObject(row) && Object.keys(row).length === 0);
}

/** Ten times as many as the providers list today. */
const locationRowsMax = 2_000_000;
/** If more than this share of the rows is unreadable, the list has changed its format. */
const unreadableShareMax = 0.01;

/**
 * The readable rows of a list of locations. An unreadable one is dropped, unless there are too many of them.
 * @param fields the names of a row's fields: its name, the code of its country, and its type.
 */
export function toLocationRows(
  list: unknown,
  [name, countryCode, type]: readonly [name: string, countryCode: string, type: string],
): LocationRow[] | Failure {
  if (!Array.isArray(list) || list.length > locationRowsMax) return { failure: "unreadable" };
  const rowSchema = z
    .object({ [name]: z.string(), [countryCode]: z.string().nullable(), [type]: z.string() })
    .transform((row) => ({ name: row[name] ?? "", countryCode: row[countryCode] ?? "", type: row[type] ?? "" }));
  const rows = list.flatMap((row) => rowSchema.safeParse(row).data ?? []);
  const unreadable = list.length - rows.length;
  return unreadable > list.length * unreadableShareMax ? { failure: "unreadable" } : rows;
}
