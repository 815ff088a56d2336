import { z } from "zod";

/**
 * The JSON Schema (2020-12) of what a schema takes, or of what it gives, for whoever is told about the API. Without the
 * line that names the dialect, which is the one that is meant wherever it stands.
 */
export function jsonSchemaOf(schema: z.ZodType, io: "input" | "output"): Record<string, unknown> {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    override: ({ zodSchema, jsonSchema }) => {
      // What is turned into something else behind its default keeps it as told.
      const told = z.globalRegistry.get(zodSchema)?.default;
      if (told !== undefined) jsonSchema.default = told;
      // Every integer of JavaScript has these bounds; they are none of ours.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // That other properties may be anything goes without saying.
      const { additionalProperties: others } = jsonSchema;
      if (typeof others === "object" && Object.keys(others).length === 0) delete jsonSchema.additionalProperties;
    },
  });
  return json;
}
