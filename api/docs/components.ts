import { z } from "zod";
import { type ErrorStatus, errorBodySchemas, errorDefinitions } from "../../shared/error-schemas.ts";
import { type ErrorCode, errors } from "../../shared/errors.ts";
import { requestId } from "../../shared/ids.ts";
import { querySchema, searchRequestBody } from "../../shared/query/query.ts";
import { result, searchResponseBody, siteLink } from "../../shared/results.ts";
import { idempotencyKey } from "../http/idempotency-key.ts";
import { usageResponseBody } from "../read-usage.ts";

/** A part of the document. */
export type Json = { [key: string]: unknown };

export const refTo = (kind: "schemas" | "responses" | "headers" | "parameters" | "examples", name: string) => ({
  $ref: `#/components/${kind}/${name}`,
});

/** The statuses in which an operation can fail, in ascending order. */
export const errorStatuses = Object.keys(errorBodySchemas).map(Number) as ErrorStatus[]; // Object.keys forgets what they are.

/** The codes that a status can have. */
export function codesOf(status: ErrorStatus): ErrorCode[] {
  const codes = Object.keys(errors) as ErrorCode[]; // Object.keys forgets what they are.
  return codes.filter((code) => errors[code].status === status);
}

/** `query_rejected` → `QueryRejected`. */
const nameOf = (code: ErrorCode) => code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** What callers send. */
const sent = { SearchRequest: searchRequestBody, IdempotencyKey: idempotencyKey };

/** What they get. */
const received = {
  RequestId: requestId,
  SearchAnswer: searchResponseBody,
  Query: querySchema,
  Result: result,
  SiteLink: siteLink,
  Usage: usageResponseBody,
  ...Object.fromEntries(errorStatuses.flatMap(codesOf).map((code) => [nameOf(code), errorDefinitions[code]])),
  ...Object.fromEntries(errorStatuses.map((status) => [`Error${status}`, errorBodySchemas[status]])),
};

/**
 * The schemas that requests are validated with and that tests hold responses to, as JSON Schema, each under the name
 * that a generated client will have for it.
 */
export function schemas(): Json {
  return { ...jsonSchemas(sent, "input"), ...jsonSchemas(received, "output") };
}

function jsonSchemas(named: Record<string, z.ZodType>, io: "input" | "output"): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const made = z.toJSONSchema(registry, {
    io,
    uri: (id) => refTo("schemas", id).$ref,
    override: ({ zodSchema, jsonSchema }) => complete(zodSchema, jsonSchema, io),
  });
  const parts = Object.entries(made.schemas).map(([id, { $schema: _dialect, $id: _address, ...schema }]) => [
    id,
    schema,
  ]);
  return Object.fromEntries(parts);
}

function complete(from: z.core.$ZodType, schema: z.core.JSONSchema.BaseSchema, io: "input" | "output"): void {
  // zod leaves both out where a text is transformed afterwards; here they are meant for what is sent.
  const { default: absent, examples } = z.globalRegistry.get(from) ?? {};
  if (absent !== undefined) Object.assign(schema, { default: absent });
  if (examples !== undefined) Object.assign(schema, { examples });
  // An addition is no breaking change: callers have to let pass what they do not know.
  if (io === "output") delete schema.additionalProperties;
  if (schema.type === "integer") schema.format = (schema.maximum ?? Infinity) < 2 ** 31 ? "int32" : "int64";
  if (schema.oneOf) Object.assign(schema, { discriminator: discriminatorOf(schema.oneOf) });
}

/** Which of the errors of one status it is, by its code. */
function discriminatorOf(variants: readonly { $ref?: string | undefined }[]): Json {
  const refs = new Set(variants.map(({ $ref }) => $ref));
  const mapping = errorStatuses
    .flatMap(codesOf)
    .map((code) => [code, refTo("schemas", nameOf(code)).$ref] as const)
    .filter(([, ref]) => refs.has(ref));
  return { propertyName: "code", mapping: Object.fromEntries(mapping) };
}
