import { z } from "zod";

/** Parts of the contract's schemas. */

export const natural = z.int().min(0);

/** A field that may be missing. */
export const optional = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.exactOptional().describe(description);
