import { z } from "zod";

/**
 * The JSON Schema (2020-12) of what a zod schema accepts (`input`) or produces (`output`). Without `$schema`, because MCP
 * uses this dialect by default.
 */
export function jsonSchemaOf(schema: z.ZodType, io: "input" | "output"): Record<string, unknown> {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    override: ({ zodSchema, jsonSchema }) => {
      // zod drops the default of a field that is transformed afterwards; its metadata has it.
      const fallback = z.globalRegistry.get(zodSchema)?.default;
      if (fallback !== undefined) jsonSchema.default = fallback;
      // zod adds these bounds to every integer.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // Fields may be added to an answer, and clients keep its schema: they must accept fields that they do not know.
      if (io === "output") delete jsonSchema.additionalProperties;
    },
  });
  return json;
}
