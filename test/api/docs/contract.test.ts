import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../../api/docs/openapi-document.ts";
import { usageResponseBody } from "../../../api/read-usage.ts";
import { errorBodySchemas, type ErrorStatus } from "../../../api/error-schemas.ts";
import { compactResponseBody, searchResponseBody } from "../../../shared/search-answer.ts";
import { setSuspended } from "../../../shared/organizations/organizations.ts";
import { endlessWindow } from "../../harness/fixtures/refusals.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { type Prism, startPrism } from "./prism.ts";

/** Every status of both operations, from real processes. The schemas and Prism check each answer against the document. */

const service = await Service.start({ workers: 0, environment: { SEARCH_DEADLINE_MS: "2500" } });
const upstream = service.apis[0]?.url ?? "";
const strict = await startPrism(openApiDocument(), upstream, { requests: true });
const lenient = await startPrism(openApiDocument(), upstream, { requests: false });
const organization = await service.organization({ terms: endlessWindow });
afterAll(async () => {
  await Promise.all([strict, lenient].map((prism) => prism.close()));
  await service.stop();
});

const seenStatuses = { search: new Set<number>(), usage: new Set<number>() };

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
  const response = await send(body, options);
  seenStatuses.search.add(response.status);
  return parsed(schema, response);
}

async function usage({ by = organization, through = strict }: RequestOptions = {}) {
  const response = await fetch(`${through.url}/v1/usage`, { headers: { authorization: `Bearer ${by.token}` } });
  seenStatuses.usage.add(response.status);
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

test("402, 429, 500, 502 and 504", async () => {
  const reader = await service.organization({ terms: { operations: ["usage.get"] } });
  expect(await search({ keyword: "a" }, { by: reader })).toBe("402 plan_required");
  const suspended = await service.organization();
  await setSuspended(service.database, suspended.organizationId, true);
  expect(await search({ keyword: "a" }, { by: suspended })).toBe("402 plan_required");
  const lowOnCredit = await service.organization({ creditMils: 3 });
  expect(await search({ keyword: "a" }, { by: lowOnCredit })).toBe("402 out_of_credits");

  const limited = await service.organization({ terms: { ...endlessWindow, windowLimit: 1 } });
  expect(await usage({ by: limited })).toBe("200");
  expect(await search({ keyword: "a" }, { by: limited })).toBe("429 rate_limited");
  expect(await usage({ by: limited })).toBe("429 rate_limited");
  const crowded = await service.organization({ terms: { ...endlessWindow, concurrency: 1 } });
  const running = search({ keyword: "sandbox:slow=1500" }, { by: crowded });
  await service.until(async () => (await service.holdsOf(crowded.organizationId)).open === 1);
  expect(await search({ keyword: "a" }, { by: crowded })).toBe("429 rate_limited");
  expect(await running).toBe("200");

  for (const trigger of ["error", "refused", "garbage"]) {
    expect(await search({ keyword: `sandbox:${trigger}` })).toBe("502 engine_error");
  }
  expect(await search({ keyword: "sandbox:timeout" })).toBe("504 engine_timeout");

  const invalidPlan = await service.organization({ terms: endlessWindow });
  await service.database.query(
    `update plans set operations = '{serp.search,serp.unheard}'
     where code = (select plan_code from organizations where id = $1)`,
    [invalidPlan.organizationId],
  );
  expect(await search({ keyword: "a" }, { by: invalidPlan })).toBe("500 internal_error");
  expect(await usage({ by: invalidPlan })).toBe("503 unavailable");
});

test("501, which Prism rejects itself", async () => {
  const direct = { url: service.apis[0]?.url ?? "", close: async () => undefined };
  expect(await search({ keyword: "a", engine: "bing" }, { through: direct })).toBe("501 not_implemented");
});

test("the tests above cover every status of the document", () => {
  const documented = z.object({
    paths: z.record(z.string(), z.record(z.string(), z.object({ responses: z.record(z.string(), z.unknown()) }))),
  });
  const { paths } = documented.parse(openApiDocument());
  const documentedStatuses = (path: string, method: string) =>
    Object.keys(paths[path]?.[method]?.responses ?? {}).map(Number);
  const ascending = (statuses: Set<number>) => [...statuses].toSorted((one, other) => one - other);
  expect(ascending(seenStatuses.search)).toEqual(documentedStatuses("/v1/serp/search", "post"));
  expect(ascending(seenStatuses.usage)).toEqual(documentedStatuses("/v1/usage", "get"));
});
