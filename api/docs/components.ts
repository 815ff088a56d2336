import { z } from "zod";
import { errorBodySchemas, errorDefinitions, errorMessage, type ErrorStatus } from "../error-schemas.ts";
import { type ErrorCode, errors } from "../../shared/errors.ts";
import { requestId } from "../../shared/ids.ts";
import { searchRequestBody } from "../../shared/query/query.ts";
import { result, siteLink } from "../../shared/results.ts";
import {
  answeredQuery,
  compactQuery,
  compactResponseBody,
  compactResult,
  searchResponseBody,
} from "../../shared/search-answer.ts";
import { idempotencyKey } from "../http/request-headers.ts";
import { usageResponseBody } from "../read-usage.ts";

/** Any JSON object of the document. */
export type Json = { [key: string]: unknown };

export const refTo = (kind: "schemas" | "responses" | "headers" | "parameters" | "examples", name: string) => ({
  $ref: `#/components/${kind}/${name}`,
});

/** All error statuses of the operations, ascending. */
export const errorStatuses = Object.keys(errorBodySchemas).map(Number) as ErrorStatus[]; // Object.keys returns strings.

/** The error codes of a status. */
export function codesOf(status: ErrorStatus): ErrorCode[] {
  const codes = Object.keys(errors) as ErrorCode[]; // Object.keys returns strings.
  return codes.filter((code) => errors[code].status === status);
}

/** `query_rejected` → `QueryRejected`. */
const nameOf = (code: ErrorCode) => code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());

const requestSchemas = { SearchRequest: searchRequestBody, IdempotencyKey: idempotencyKey };

const responseSchemas = {
  RequestId: requestId,
  SearchAnswer: searchResponseBody,
  Query: answeredQuery,
  Result: result,
  SiteLink: siteLink,
  CompactSearchAnswer: compactResponseBody,
  CompactQuery: compactQuery,
  CompactResult: compactResult,
  Usage: usageResponseBody,
  ErrorMessage: errorMessage,
  ...Object.fromEntries(errorStatuses.flatMap(codesOf).map((code) => [nameOf(code), errorDefinitions[code]])),
  ...Object.fromEntries(errorStatuses.map((status) => [`Error${status}`, errorBodySchemas[status]])),
};

/**
 * The schemas that validate requests, and responses in the tests, as JSON Schema. Their names become the type names of
 * generated clients.
 */
export function schemas(): Json {
  const answers = jsonSchemas(responseSchemas, "output");
  return { ...jsonSchemas(requestSchemas, "input"), ...answers, CompactResult: withFieldsOf(answers) };
}

/**
 * A 200 is an answer of one of two formats, and generated code reads only the fields that both have. So the compact result
 * names the fields that it never has as optional: `results[0].rank` compiles, as a number that may be missing.
 */
function withFieldsOf({ Result, CompactResult }: Record<string, z.core.JSONSchema.BaseSchema>): Json {
  const absent = Object.entries(Result?.properties ?? {}).map(([name, schema]) => [
    name,
    { ...(typeof schema === "object" && schema), description: "Only in the format `full`." },
  ]);
  return { ...CompactResult, properties: { ...Object.fromEntries(absent), ...CompactResult?.properties } };
}

function jsonSchemas(
  named: Record<string, z.ZodType>,
  io: "input" | "output",
): Record<string, z.core.JSONSchema.BaseSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const converted = z.toJSONSchema(registry, {
    io,
    uri: (id) => refTo("schemas", id).$ref,
    override: ({ zodSchema, jsonSchema }) => addMetadata(zodSchema, jsonSchema, io),
  });
  const parts = Object.entries(converted.schemas).map(([id, { $schema: _dialect, $id: _address, ...schema }]) => [
    id,
    schema,
  ]);
  return Object.fromEntries(parts);
}

function addMetadata(from: z.core.$ZodType, schema: z.core.JSONSchema.BaseSchema, io: "input" | "output"): void {
  // zod drops both if a value is transformed afterwards; in requests they are for the value before that.
  const { default: fallback, examples } = z.globalRegistry.get(from) ?? {};
  if (fallback !== undefined) Object.assign(schema, { default: fallback });
  if (examples !== undefined) Object.assign(schema, { examples });
  // New fields are not a breaking change, so clients must ignore unknown ones.
  if (io === "output") delete schema.additionalProperties;
  if (schema.type === "integer") schema.format = (schema.maximum ?? Infinity) < 2 ** 31 ? "int32" : "int64";
  if (schema.oneOf) Object.assign(schema, { discriminator: discriminatorOf(schema.oneOf) });
}

/** Tells the errors of one status apart by their code. */
function discriminatorOf(variants: readonly { $ref?: string | undefined }[]): Json {
  const refs = new Set(variants.map(({ $ref }) => $ref));
  const mapping = errorStatuses
    .flatMap(codesOf)
    .map((code) => [code, refTo("schemas", nameOf(code)).$ref] as const)
    .filter(([, ref]) => refs.has(ref));
  return { propertyName: "code", mapping: Object.fromEntries(mapping) };
}
