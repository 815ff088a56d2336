import { expect, test } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../../api/docs/openapi-document.ts";
import {
  answerExamples,
  errorExamples,
  type Examples,
  requestExamples,
  usageExamples,
} from "../../../api/docs/examples.ts";
import { usageResponseBody } from "../../../api/read-usage.ts";
import { errorBodySchemas, type ErrorStatus, errorDefinitions } from "../../../api/error-schemas.ts";
import { type ErrorCode, errors } from "../../../shared/errors.ts";
import { searchRequestBody } from "../../../shared/query/query.ts";
import { resultTypes } from "../../../shared/results.ts";
import { compactResponseBody, searchResponseBody } from "../../../shared/search-answer.ts";
import { operations } from "../../../shared/credits/plans.ts";

/** The content of the document. lint.test.ts and client.test.ts have the linters and a generated client. */

const valuesOf = (examples: Examples) => Object.values(examples).map(({ value }) => value);
const statuses = Object.keys(errorBodySchemas).map(Number) as ErrorStatus[]; // Object.keys returns strings.

test("every example matches its schema", () => {
  const held: [z.ZodType, Examples][] = [
    [searchRequestBody, requestExamples],
    [z.xor([searchResponseBody, compactResponseBody]), answerExamples],
    [usageResponseBody, usageExamples],
    ...statuses.map((status): [z.ZodType, Examples] => [errorBodySchemas[status], errorExamples[status]]),
  ];
  const refused = held.flatMap(([schema, examples]) =>
    valuesOf(examples).filter((value) => !schema.safeParse(value).success),
  );
  expect(refused).toEqual([]);
});

test("every error has an example under its status", () => {
  const codes = statuses.flatMap((status) =>
    valuesOf(errorExamples[status]).map((value) => {
      const { code } = errorBodySchemas[status].parse(value).error;
      expect(errors[code].status).toBe(status);
      return code;
    }),
  );
  // The two errors of the router belong to no operation.
  const expected = Object.keys(errorDefinitions).filter((code) => !["not_found", "method_not_allowed"].includes(code));
  expect([...new Set<ErrorCode>(codes)].toSorted()).toEqual(expected.toSorted());
});

const components = z.object({
  components: z.object({
    schemas: z.object({
      SearchRequest: z.object({
        additionalProperties: z.literal(false),
        required: z.tuple([z.literal("keyword")]),
        properties: z.record(
          z.string(),
          z.object({ description: z.string().min(20), default: z.unknown().optional() }),
        ),
      }),
      Result: z.object({
        properties: z.object({ type: z.object({ enum: z.array(z.string()), description: z.string() }) }),
      }),
    }),
  }),
});

test("the request schema has the defaults, and each type of result a description", () => {
  const { SearchRequest, Result } = components.parse(openApiDocument()).components.schemas;
  const fields = Object.entries(SearchRequest.properties).map(([name, field]) => [name, field.default]);
  expect(Object.fromEntries(fields)).toEqual({
    keyword: undefined,
    engine: "google",
    location: "United States",
    language: "English",
    device: "desktop",
    depth: 10,
    targetDomain: undefined,
    types: undefined,
    format: "full",
  });
  const { type } = Result.properties;
  expect(type.enum).toEqual([...resultTypes]);
  for (const kind of resultTypes) expect(type.description).toMatch(new RegExp(`^- \`${kind}\`: \\S`, "m"));
});

test("the document has every operation of the plans, and each requires a token", () => {
  const document = z.object({
    security: z.tuple([z.object({ token: z.tuple([]) })]),
    paths: z.record(z.string(), z.record(z.string(), z.strictObject({}).loose())),
  });
  const { paths } = document.parse(openApiDocument());
  const described = Object.values(paths).flatMap((path) => Object.values(path));
  expect(described).toHaveLength(operations.length);
  expect(described.filter((operation) => "security" in operation)).toEqual([]);
});
