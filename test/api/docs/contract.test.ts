import { afterAll, expect, test } from "vitest";
import type { z } from "zod";
import { openApiDocument } from "../../../api/docs/openapi-document.ts";
import { usageResponseBody } from "../../../api/read-usage.ts";
import { errorBodySchemas, type ErrorStatus } from "../../../api/error-schemas.ts";
import { compactResponseBody, searchResponseBody } from "../../../shared/search-answer.ts";
import { endlessWindow } from "../../harness/fixtures/refusals.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { type Prism, startPrism } from "./prism.ts";

/**
 * Answers of real processes and refusals of what the document does not allow. The schemas and Prism compare each with the
 * document. errors.test.ts has the other statuses.
 */

const service = await Service.start({ workers: 0 });
const upstream = service.apis[0]?.url ?? "";
const strict = await startPrism(openApiDocument(), upstream, { requests: true });
const lenient = await startPrism(openApiDocument(), upstream, { requests: false });
const organization = await service.organization({ terms: endlessWindow });
afterAll(async () => {
  await Promise.all([strict, lenient].map((prism) => prism.close()));
  await service.stop();
});

interface RequestOptions {
  by?: Organization;
  through?: Prism;
  key?: string;
}

/** `schema` is that of a 200: the full one, unless the request orders another format. */
type SearchOptions = RequestOptions & { schema?: z.ZodType };

function send(body: unknown, { by = organization, through = strict, key }: RequestOptions = {}): Promise<Response> {
  return fetch(`${through.url}/v1/serp/search`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${by.token}`,
      "content-type": "application/json",
      ...(key !== undefined && { "idempotency-key": key }),
    },
    body: JSON.stringify(body),
  });
}

async function search(body: unknown, { schema = searchResponseBody, ...options }: SearchOptions = {}) {
  return parsed(schema, await send(body, options));
}

async function usage({ by = organization, through = strict }: RequestOptions = {}) {
  const response = await fetch(`${through.url}/v1/usage`, { headers: { authorization: `Bearer ${by.token}` } });
  return parsed(usageResponseBody, response);
}

/** Parses an answer with the schema of its status that the document is built from. @returns status and error code. */
async function parsed(answer: z.ZodType, response: Response) {
  const { status, headers } = response;
  const body: unknown = await response.json();
  expect({ body, violations: headers.get("sl-violations") }).toMatchObject({ violations: null });
  if (status === 200) answer.parse(body);
  else return `${status} ${errorBodySchemas[statusOf(status)].parse(body).error.code}`;
  return "200";
}

function statusOf(status: number): ErrorStatus {
  expect(Object.keys(errorBodySchemas)).toContain(String(status));
  return status as ErrorStatus; // Checked in the line above.
}

test("503 without workers, and 400 for a query that no provider supports", async () => {
  expect(await search({ keyword: "a" })).toBe("503 unavailable");
  const serperWorker = await service.startWorker({ SERP_PROVIDERS: "serper", SERPER_API_KEY: "unused" });
  await service.until(async () => (await search({ keyword: "a", device: "mobile" })) !== "503 unavailable");
  expect(await search({ keyword: "a", device: "mobile" })).toBe("400 query_rejected");
  await serperWorker.stop();
  await service.startWorker();
  await service.until(async () => (await search({ keyword: "a", device: "mobile" })) === "200");
});

test("200, and a replay of it", async () => {
  expect(await search({ keyword: "a", depth: 30, targetDomain: "harbour-almanac.example" }, { key: "one" })).toBe(
    "200",
  );
  const everything = { engine: "google", location: "Berlin, Germany", language: "de", device: "mobile" };
  expect(await search({ keyword: "a", ...everything }, { key: "two" })).toBe("200");
  expect(await search({ keyword: "a", ...everything }, { key: "two" })).toBe("200");
  expect(await search({ keyword: "sandbox:empty" })).toBe("200");
  expect(await search({ keyword: "a sandbox:corrected" })).toBe("200");
  expect(await usage()).toBe("200");
});

test("200 with the types and in the format that the request orders", async () => {
  const types = ["people_also_ask", "organic", "organic"];
  expect(await search({ keyword: "a", types, format: "full" }, { key: "types" })).toBe("200");
  expect(await search({ keyword: "a", types: ["organic", "people_also_ask"] }, { key: "types" })).toBe("200");
  const compact = { keyword: "a sandbox:corrected", format: "compact", targetDomain: "harbour-almanac.example" };
  expect(await search(compact, { key: "compact", schema: compactResponseBody })).toBe("200");
  expect(await search(compact, { key: "compact", schema: compactResponseBody })).toBe("200");
});

test("400 and 401, for requests that the document does not allow", async () => {
  const fields = [{ depth: 0 }, { page: 2 }, { types: ["news"] }, { types: [] }, { format: "short" }];
  const wrong = [{}, { keyword: "" }, [], ...fields.map((field) => ({ keyword: "a", ...field }))];
  for (const body of wrong) expect(await search(body, { through: lenient })).toBe("400 bad_request");
  for (const body of wrong) expect(await send(body)).toMatchObject({ status: 422 });
  expect(await search({ keyword: "b" }, { key: "one" })).toBe("400 bad_request");
  expect(await search({ keyword: "a", location: "Atlantis" })).toBe("400 bad_request");

  const stranger = { ...organization, token: "unknown" };
  expect(await search({ keyword: "a" }, { by: stranger })).toBe("401 unauthenticated");
  expect(await usage({ by: stranger })).toBe("401 unauthenticated");
  const payer = await service.organization({ scopes: ["billing"] });
  expect(await search({ keyword: "a" }, { by: payer })).toBe("401 unauthenticated");
  expect(await usage({ by: payer })).toBe("401 unauthenticated");
});
