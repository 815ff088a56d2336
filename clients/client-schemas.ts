import { z } from "zod";
import { openApiDocument } from "../api/docs/openapi-document.ts";

/** A schema of the API's document. It has further fields, such as descriptions, but not formats such as `int32`, which the languages of the clients do not know. */
export interface Schema {
  $ref?: string | undefined;
  type?: string | undefined;
  const?: unknown;
  enum?: unknown[] | undefined;
  items?: Schema | undefined;
  properties?: Record<string, Schema> | undefined;
  required?: string[] | undefined;
}
const schema: z.ZodType<Schema> = z.lazy(() =>
  z
    .looseObject({
      $ref: z.string().optional(),
      type: z.string().optional(),
      const: z.unknown().optional(),
      enum: z.array(z.unknown()).optional(),
      items: schema.optional(),
      properties: z.record(z.string(), schema).optional(),
      required: z.array(z.string()).optional(),
    })
    .transform(({ format: _format, ...kept }) => kept),
);
const document = z.object({ components: z.object({ schemas: z.record(z.string(), schema) }) });

// The body of a status, and a header. The clients have types of their own for them.
const unnamed = /^(?:Error\d+|IdempotencyKey)$/;

/** The schemas that the clients have types of: requests, answers and errors. */
export function clientSchemas(): Record<string, Schema> {
  const { schemas } = document.parse(openApiDocument()).components;
  const { CompactResult = {} } = schemas;
  const { properties = {}, required = [] } = CompactResult;
  return {
    ...Object.fromEntries(Object.entries(schemas).filter(([name]) => !unnamed.test(name))),
    // The document also names the fields that it never has.
    CompactResult: { ...CompactResult, properties: pick(properties, required) },
  };
}

export const pick = (from: Record<string, Schema>, names: readonly string[]): Record<string, Schema> =>
  Object.fromEntries(names.map((name) => [name, from[name] ?? {}]));
