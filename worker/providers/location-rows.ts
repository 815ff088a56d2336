import type { z } from "zod";
import type { LocationRow } from "../locations/listed-location.ts";
import type { Failure } from "./provider.ts";

/** Ten times as many as the providers list today. */
export const locationRowsMax = 2_000_000;
/** A list in which more rows than this share are unreadable has changed its format. */
const unreadableShareMax = 0.01;

/** Parses a whole list, which is larger than any page. Only the operator's command does this, never a worker. */
export function parseList(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** The readable rows. An unreadable one is dropped, unless there are too many of them. */
export function toRows(list: readonly unknown[], rowSchema: z.ZodType<LocationRow>): LocationRow[] | Failure {
  const rows = list.flatMap((row) => rowSchema.safeParse(row).data ?? []);
  const unreadable = list.length - rows.length;
  return unreadable > list.length * unreadableShareMax ? { failure: "unreadable" } : rows;
}
