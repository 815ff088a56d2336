import { z } from "zod";

/** The schema of a row. Its keys are the names of columns in camel case: the column `created_at` is read as `createdAt`. */
export const rowOf = <Shape extends z.ZodRawShape>(shape: Shape) => z.preprocess(inCamelCase, z.object(shape));

function inCamelCase(found: unknown): unknown {
  if (typeof found !== "object" || found === null) return found;
  return Object.fromEntries(Object.entries(found).map(([column, value]) => [nameOf(column), value]));
}

const nameOf = (column: string) => column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
