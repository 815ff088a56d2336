import { z } from "zod";

/** Parts of the contract's schemas. */

export const natural = z.int().min(0);

/**
 * A list that refuses more than `max` elements. Only one more is read: an error would name each of the thousands that a caller can
 * send.
 */
export const readUpTo = <List extends z.ZodType>(max: number, list: List) =>
  z.preprocess((sent) => (Array.isArray(sent) ? sent.slice(0, max + 1) : sent), list);

/** A field that may be missing. */
export const optional = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.exactOptional().describe(description);
