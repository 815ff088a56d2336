import { z } from "zod";

/** The schema of a row. Its keys are the names of columns in camel case: the column `created_at` is read as `createdAt`. */
export function rowOf<Shape extends z.ZodRawShape>(shape: Shape) {
  // Found once for each schema: an export reads a million rows, and other callers wait meanwhile.
  const columns = Object.keys(shape).map((name) => [name, columnOf(name)] as const);
  return z.preprocess((row) => inCamelCase(row, columns), z.object(shape));
}

function inCamelCase(row: unknown, columns: readonly (readonly [name: string, column: string])[]): unknown {
  if (typeof row !== "object" || row === null) return row;
  const values: Record<string, unknown> = {};
  for (const [name, column] of columns) {
    const value: unknown = Reflect.get(row, column);
    if (value !== undefined) values[name] = value;
  }
  return values;
}

/** The value of a row with one column. @throws {z.ZodError} if it is another value, or there is no row. */
export const valueOf = <Value>(schema: z.ZodType<Value>, row: object | undefined): Value =>
  schema.parse(Object.values(row ?? {})[0]);

/** The values of rows with one column. @throws as {@link valueOf}. */
export const valuesOf = <Value>(schema: z.ZodType<Value>, rows: readonly object[]): Value[] =>
  rows.map((row) => valueOf(schema, row));

const columnOf = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
