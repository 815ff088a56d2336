import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import { expect, test } from "vitest";
import { answerExamples, errorExamples, type Examples, usageExamples } from "../../../api/docs/examples.ts";
import { openApiDocument } from "../../../api/docs/openapi-document.ts";
import { listTools } from "../../../api/mcp/tools.ts";
import { errorBodySchema } from "../../../shared/errors.ts";
import type { Plan } from "../../../shared/credits/plans.ts";

/** Clients keep the published schemas and refuse what these do not allow. */

const plan: Plan = {
  code: "free",
  priceMils: 5,
  windowLimit: 60,
  windowSeconds: 60,
  concurrency: 5,
  unpaidCalls: 10,
  startingGrantMils: 1_000,
  operations: [],
};

const valuesOf = (examples: Examples) => Object.values(examples).map(({ value }) => value);
const errorValues = Object.values(errorExamples)
  .flatMap(valuesOf)
  .map((value) => errorBodySchema.parse(value))
  .map(({ error, ...body }) => ({ ...body, error: { ...error, nextStep: "Wait 1 s, then retry." } }));

/** The same value with one more field in each of its objects. */
function extended(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(extended);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) => [name, extended(field)] as const);
  return { ...Object.fromEntries(fields), addedLater: { nested: true } };
}

const [search, usage] = listTools({ plan, plain: true });
const ofDocument = (name: string): Record<string, unknown> => ({
  ...openApiDocument(),
  $ref: `#/components/schemas/${name}`,
});
const published = [
  { schema: "of the tool serp_search", json: { ...search?.outputSchema }, values: valuesOf(answerExamples) },
  { schema: "of the tool serp_search, for errors", json: { ...search?.outputSchema }, values: errorValues },
  { schema: "of the tool usage_get", json: { ...usage?.outputSchema }, values: valuesOf(usageExamples) },
  {
    schema: "SearchAnswer of /openapi.json",
    json: ofDocument("SearchAnswer"),
    values: [answerExamples["results"]?.value],
  },
  { schema: "Usage of /openapi.json", json: ofDocument("Usage"), values: valuesOf(usageExamples) },
];

test.each(published)(
  "the schema $schema accepts answers with fields that are added later, and no answer that lacks a field",
  ({ json, values }) => {
    const validate = new AjvJsonSchemaValidator().getValidator(json);
    expect(values.length).toBeGreaterThan(0);
    for (const value of values) {
      expect(validate(extended(value))).toMatchObject({ valid: true });
      const [first = ""] = Object.keys(Object(value));
      expect(validate({ ...Object(value), [first]: undefined })).toMatchObject({ valid: false });
    }
  },
);

test("the schemas of the tools' answers have no rules for texts, which every client would load", () => {
  const schemas = JSON.stringify([search?.outputSchema, usage?.outputSchema]);
  expect(schemas).not.toMatch(/"(pattern|minLength|maxLength)":/);
});
