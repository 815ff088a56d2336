import type { Request, Response } from "express";
import type { ErrorStatus } from "../error-schemas.ts";
import { type Json, errorStatuses, refTo, schemas } from "./components.ts";
import { requestExamples } from "./examples.ts";
import { aboutIdempotencyKey, aboutSearch, aboutTheApi, aboutTokens, aboutUsage } from "./openapi-descriptions.ts";
import { type SampleLanguage, sampleLanguages, searchCode, usageCode } from "../search-samples.ts";
import { headerComponents, jsonContent, responses } from "./responses.ts";

/** The version of the contract under /v1. The minor number grows with additions, the patch number with wording. */
const version = "1.3.0";

/** Usage never answers 500: a defect is a 503. */
const usageErrors: ErrorStatus[] = [401, 429, 503];

/** Builds the OpenAPI 3.1 document from the schemas that validate requests, and responses in the tests. */
export function openApiDocument(): Json {
  return {
    openapi: "3.1.1",
    info: {
      title: "Serpmill",
      version,
      summary: "Search results, paid for to the mil, exactly once.",
      description: aboutTheApi,
      contact: { name: "The operator of this service" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "This service." }],
    tags: [
      { name: "Search", description: "Ranked results for a keyword." },
      { name: "Usage", description: "The available credit." },
    ],
    security: [{ token: [] }],
    paths: { "/v1/serp/search": { post: search() }, "/v1/usage": { get: usage() } },
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer", bearerFormat: "smk_…", description: aboutTokens } },
      parameters: {
        IdempotencyKey: {
          name: "Idempotency-Key",
          in: "header",
          required: false,
          description: aboutIdempotencyKey,
          schema: refTo("schemas", "IdempotencyKey"),
        },
      },
      headers: headerComponents,
      responses: responses(),
      schemas: schemas(),
    },
  };
}

function search(): Json {
  return {
    operationId: "search",
    tags: ["Search"],
    summary: "Search Google",
    description: aboutSearch,
    "x-custom-examples": Object.entries(requestExamples).flatMap(([example, { value }]) =>
      codeSamples((language) => searchCode(language, placeholder, value), { example }),
    ),
    parameters: [refTo("parameters", "IdempotencyKey")],
    requestBody: {
      required: true,
      description: "What to search for.",
      content: jsonContent("SearchRequest", requestExamples),
    },
    responses: operationResponses("Search", errorStatuses),
  };
}

function usage(): Json {
  return {
    operationId: "getUsage",
    tags: ["Usage"],
    summary: "Read the balance",
    description: aboutUsage,
    "x-custom-examples": codeSamples((language) => usageCode(placeholder)[language]),
    responses: operationResponses("Usage", usageErrors),
  };
}

// The page puts the address in its place that the reader came by.
const placeholder = "https://HOST";

/** Generated code has neither a time-out nor a check of the status. */
function codeSamples(code: (language: SampleLanguage) => string, belongsTo: { example?: string } = {}): Json[] {
  const languages = Object.entries(sampleLanguages) as [SampleLanguage, string][]; // Object.entries returns strings.
  return languages.map(([language, label]) => ({ lang: language, label, source: code(language), ...belongsTo }));
}

function operationResponses(name: string, failures: readonly ErrorStatus[]): Json {
  const statuses = failures.map((status) => [status, refTo("responses", `Error${status}`)]);
  return { 200: refTo("responses", name), ...Object.fromEntries(statuses) };
}

/** GET /openapi.json: built once. It is the same for all callers, so caches may keep it. */
export function handleOpenApiDocument() {
  const body = Buffer.from(JSON.stringify(openApiDocument()));
  return (_request: Request, response: Response) => {
    response.set({ "Cache-Control": "public, max-age=300", "Content-Type": "application/json; charset=utf-8" });
    response.end(body);
  };
}
