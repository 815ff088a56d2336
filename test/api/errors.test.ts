import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../api/docs/openapi-document.ts";
import { errorBodySchemas } from "../../api/error-schemas.ts";
import { usageResponseBody } from "../../api/read-usage.ts";
import { errors } from "../../shared/errors.ts";
import { compactResponseBody, searchResponseBody } from "../../shared/search-answer.ts";
import { Agent, revisionNames } from "../harness/clients/agent.ts";
import { challenges, endlessWindow, expectNoTrace, type Refusal, refusalIn } from "../harness/fixtures/refusals.ts";
import { type Answer, type Organization, Service } from "../harness/processes/service.ts";
import { startPrism } from "./docs/prism.ts";

/**
 * Every error of the catalogue, and answers, from the caller's side. Prism compares searches and readings of the usage with the
 * document, a strict one also the requests. outages.test.ts has the errors of an outage.
 */

const timeoutMs = 4_000;
const metCodes = new Set<string>();
const seenStatuses = { search: new Set<number>(), usage: new Set<number>() };

const service = await Service.start({
  apis: 2,
  environment: { SEARCH_DEADLINE_MS: String(timeoutMs), TOPUP_URL: "https://pay.example" },
});
// Callers reach the second API through Prism.
const documented = 1;
const upstream = service.apis[documented]?.url ?? "";
const prism = await startPrism(openApiDocument(), upstream, { requests: false });
const strict = await startPrism(openApiDocument(), upstream, { requests: true });
Object.assign(service.apis[documented] ?? {}, { url: prism.url });
const organization = await service.organization({ terms: endlessWindow });
// This search ends only at its deadline, so it starts before all other tests.
const timeout = await begin("timeout");
await service.untilRunning(1);
afterAll(async () => {
  await Promise.all([prism.close(), strict.close()]);
  await service.stop();
});

function checkedRefusal(answer: Answer): Refusal {
  const refusal = refusalIn(answer);
  expect(answer.headers.get("sl-violations")).toBeNull();
  metCodes.add(refusal.code);
  return refusal;
}

async function search(body: object, by = organization, api = documented): Promise<Answer> {
  const answer = await service.search(by.token, body, { api });
  seenStatuses.search.add(answer.status);
  return answer;
}

async function usage(token: string): Promise<Answer> {
  const answer = await service.usage(token, documented);
  seenStatuses.usage.add(answer.status);
  return answer;
}

/** Sends a search through the strict Prism. @returns its status, once the answer has the schema that the document is built from. */
async function searchStrictly(
  body: object,
  { key = "", schema = searchResponseBody }: { key?: string; schema?: z.ZodType } = {},
) {
  const response = await fetch(`${strict.url}/v1/serp/search`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${organization.token}`,
      "content-type": "application/json",
      ...(key && { "idempotency-key": key }),
    },
    body: JSON.stringify(body),
  });
  expect(response.headers.get("sl-violations")).toBeNull();
  if (response.status === 200) schema.parse(await response.json());
  return response.status;
}

/** Starts a search that stays in flight until it is released. */
async function holdSearch({ token, organizationId }: Organization): Promise<() => void> {
  const caller = new AbortController();
  service.search(token, { keyword: "sandbox:timeout" }, { signal: caller.signal }).catch(() => undefined);
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  return () => caller.abort();
}

test("200 has the types and the format that were ordered, also as a replay; another query under its key gets 400", async () => {
  const everything = { engine: "google", location: "Berlin, Germany", language: "de", device: "mobile" };
  const target = { targetDomain: "harbour-almanac.example" };
  const keyed = [
    { key: "one", body: { keyword: "a", depth: 30, ...target } },
    { key: "two", body: { keyword: "a", ...everything } },
    { key: "types", body: { keyword: "a", types: ["organic", "people_also_ask"], format: "full" } },
    {
      key: "compact",
      body: { keyword: "a sandbox:corrected", format: "compact", ...target },
      schema: compactResponseBody,
    },
  ];
  for (const { body, ...options } of [...keyed, ...keyed]) expect(await searchStrictly(body, options)).toBe(200);
  const otherOrder = { keyword: "a", types: ["people_also_ask", "organic", "organic"] };
  expect(await searchStrictly(otherOrder, { key: "types" })).toBe(200);
  for (const keyword of ["sandbox:empty", "a sandbox:corrected"]) expect(await searchStrictly({ keyword })).toBe(200);
  expect(await searchStrictly({ keyword: "b" }, { key: "one" })).toBe(400);
  const { headers, body } = await usage(organization.token);
  expect(headers.get("sl-violations")).toBeNull();
  usageResponseBody.parse(body);
});

test("400 bad_request for what the document does not allow", async () => {
  const fields = [{ depth: 0 }, { page: 2 }, { types: ["news"] }, { types: [] }, { format: "short" }];
  for (const body of [{}, { keyword: "" }, [], ...fields.map((field) => ({ keyword: "a", ...field }))]) {
    expect(checkedRefusal(await search(body))).toMatchObject({ code: "bad_request" });
    expect(await searchStrictly(body)).toBe(422);
  }
});

test("401 unauthenticated has WWW-Authenticate, with invalid_token if a token was sent", async () => {
  const body = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
  const without = await service.send("/v1/serp/search", body);
  expect(checkedRefusal(without)).toEqual({ code: "unauthenticated", details: {} });
  expect(without.headers.get("www-authenticate")).toBe(challenges.missing);
  const unknown = await search({ keyword: "a" }, { ...organization, token: "unknown" });
  expect(checkedRefusal(unknown)).toEqual({ code: "unauthenticated", details: {} });
  expect(unknown.headers.get("www-authenticate")).toBe(challenges.invalid);
  const payer = await service.organization({ scopes: ["billing"] });
  for (const answer of [await usage("unknown"), await usage(payer.token), await search({ keyword: "a" }, payer)]) {
    expect(checkedRefusal(answer)).toMatchObject({ code: "unauthenticated" });
    expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
  }
  expect((await service.send("/v1/usage")).headers.get("www-authenticate")).toBe(challenges.missing);
});

test("402 plan_required names the plan that does not include searches", async () => {
  const reader = await service.organization({ terms: { operations: ["usage.get"] } });
  const { plan } = (await usage(reader.token)).body;
  expect(checkedRefusal(await search({ keyword: "a" }, reader))).toEqual({
    code: "plan_required",
    details: { plan, action: "upgrade" },
  });
});

test("402 out_of_credits reports what searches in flight hold", async () => {
  const lowOnCredit = await service.organization({ creditMils: 3 });
  const action = { action: "topup", topupUrl: "https://pay.example" };
  const empty = { priceMils: 5, availableMils: 3, heldMils: 0, ...action };
  expect(checkedRefusal(await search({ keyword: "a" }, lowOnCredit))).toEqual({
    code: "out_of_credits",
    details: empty,
  });
  const agent = await Agent.connect(service, lowOnCredit.token);
  const { body } = await agent.call("serp.search", { keyword: "a" });
  expect(body.error.nextStep).toContain("top up at https://pay.example/.");
  await agent.close();

  const busy = await service.organization({ creditMils: 8 });
  const release = await holdSearch(busy);
  const tiedUp = { priceMils: 5, availableMils: 3, heldMils: 5, ...action };
  expect(checkedRefusal(await search({ keyword: "a" }, busy))).toEqual({ code: "out_of_credits", details: tiedUp });
  release();
});

test("429 rate_limited for a full window says when to retry, for search and usage", async () => {
  const limited = await service.organization({ terms: { windowLimit: 1, windowSeconds: 1_000_000 } });
  const first = await search({ keyword: "a" }, limited);
  expect(first).toMatchObject({ status: 200 });
  expect(first.headers.get("ratelimit-policy")).toBe('"default";q=1;w=1000000');
  expect(first.headers.get("ratelimit")).toMatch(/^"default";r=0;t=\d+$/);
  for (const answer of [await search({ keyword: "a" }, limited), await usage(limited.token)]) {
    const window = { reason: "window", retryAfterMs: expect.any(Number), limit: 1, windowSeconds: 1_000_000 };
    const { body, headers } = answer;
    expect(checkedRefusal(answer)).toEqual({ code: "rate_limited", details: window });
    const seconds = Math.ceil(body.error.details.retryAfterMs / 1_000);
    expect(headers.get("retry-after")).toBe(String(seconds));
    expect(headers.get("ratelimit-policy")).toBe('"default";q=1;w=1000000');
    expect(headers.get("ratelimit")).toBe(`"default";r=0;t=${seconds}`);
  }
});

test("429 rate_limited for too many searches in flight has the RateLimit headers too", async () => {
  const crowded = await service.organization({ terms: { ...endlessWindow, concurrency: 1, windowLimit: 9 } });
  const release = await holdSearch(crowded);
  const details = { reason: "concurrency", retryAfterMs: 1_000, limit: 1 };
  const refused = await search({ keyword: "a" }, crowded);
  expect(checkedRefusal(refused)).toEqual({ code: "rate_limited", details });
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(refused.headers.get("ratelimit")).toMatch(/^"default";r=8;t=\d+$/);
  release();
});

test("500 internal_error does not reveal the defect; the log has it", async () => {
  const invalidPlan = await service.organization({ terms: endlessWindow });
  await service.database.query(
    `update plans set operations = '{serp.search,serp.unheard}'
     where code = (select plan_code from organizations where id = $1)`,
    [invalidPlan.organizationId],
  );
  const answer = await expectNoTrace(service, invalidPlan, () => search({ keyword: "a" }, invalidPlan));
  expect(checkedRefusal(answer)).toEqual({ code: "internal_error", details: {} });
  await service.until(async () => isInLog(answer.body.requestId));
  // The contract of usage has no 500.
  expect(checkedRefusal(await usage(invalidPlan.token))).toEqual({
    code: "unavailable",
    details: { reason: "balance_unreadable", retryAfterMs: 1_000 },
  });
});

const isInLog = (requestId: string) =>
  (service.apis[documented]?.lines ?? []).some(
    (line) => line.requestId === requestId && line.msg === "unhandled error" && "err" in line,
  );

test("501 not_implemented lists the supported engines", async () => {
  const details = { engine: "bing", supported: ["google"] };
  // Prism does not pass a 501 on.
  const answer = await search({ keyword: "a", engine: "bing" }, organization, 0);
  expect(checkedRefusal(answer)).toEqual({ code: "not_implemented", details });
  expect(errorBodySchemas[501].parse(answer.body)).toEqual(answer.body);
});

const failures = [
  { trigger: "error", code: "engine_error", details: { reason: "provider_unavailable" } },
  { trigger: "refused", code: "engine_error", details: { reason: "provider_refused" } },
  { trigger: "garbage", code: "engine_error", details: { reason: "unreadable_answer" } },
  { trigger: "timeout", code: "engine_timeout", details: { timeoutMs } },
] as const;

interface BegunSearch {
  payer: Organization;
  answer: Promise<Answer>;
}

async function begin(trigger: string): Promise<BegunSearch> {
  const payer = await service.organization({ creditMils: 5 });
  return { payer, answer: search({ keyword: `sandbox:${trigger}` }, payer) };
}

test.each(failures)("$code with $details for a provider's $trigger, and nothing is charged", async (failure) => {
  const { trigger, code, details } = failure;
  const { payer, ...begun } = trigger === "timeout" ? timeout : await begin(trigger);
  const answer = await begun.answer;
  expect(checkedRefusal(answer)).toEqual({ code, details });
  await service.until(async () => (await service.holdsOf(payer.organizationId)).open === 0);
  const { requestId } = answer.body;
  expect(await service.ledgerOf(payer.organizationId)).toMatchObject([
    { kind: "grant", mils: 5 },
    { kind: "refund", mils: 0, requestId, reason: "reason" in details ? details.reason : code },
  ]);
  expect((await usage(payer.token)).body.creditBalanceMils).toBe(5);
});

test("404 and 405 are answered by the router", async () => {
  expect(checkedRefusal(await service.send("/v1/nothing"))).toEqual({ code: "not_found", details: {} });
  expect(checkedRefusal(await service.send("/v1/serp/search"))).toEqual({ code: "method_not_allowed", details: {} });
});

test("400 query_rejected proposes locations", async () => {
  const candidates = ["Boston,Massachusetts,United States"];
  const details = { reason: "location_unknown", field: "location", candidates: expect.arrayContaining(candidates) };
  const refused = checkedRefusal(await search({ keyword: "a", location: "Boston, Germany" }));
  expect(refused).toEqual({ code: "query_rejected", details });
});

test("504 engine_timeout at the deadline over MCP, in every revision", async () => {
  const payers = await Promise.all(
    revisionNames.map(async (revision) => {
      const payer = await service.organization({ creditMils: 100 });
      const agent = await Agent.connect(service, payer.token, { revision });
      const { isError, body } = await agent.call("serp.search", { keyword: "sandbox:timeout" });
      expect({ isError, error: body.error }).toMatchObject({
        isError: true,
        error: { code: "engine_timeout", details: { timeoutMs } },
      });
      expect(body.error.nextStep).toMatch(/^Nothing was charged, unless .* the retry needs the same key/);
      await agent.close();
      return payer;
    }),
  );
  for (const payer of payers) expect(await service.chargesOf(payer)).toEqual([{ kind: "refund", mils: 0 }]);
});

test("503 unavailable without a worker says when to retry", async () => {
  await service.workers[0]?.stop();
  await service.until(async () => (await search({ keyword: "a" })).status === 503);
  const details = { reason: "no_workers", retryAfterMs: expect.any(Number) };
  expect(checkedRefusal(await search({ keyword: "a" }))).toEqual({ code: "unavailable", details });
});

test("callers can get every error of the catalogue, and every status of the document", () => {
  expect([...metCodes].toSorted()).toEqual(Object.keys(errors).toSorted());
  const operation = z.object({ responses: z.record(z.string(), z.unknown()) });
  const { paths } = z
    .object({
      paths: z.object({ "/v1/serp/search": z.object({ post: operation }), "/v1/usage": z.object({ get: operation }) }),
    })
    .parse(openApiDocument());
  const ascending = (statuses: Set<number>) => [...statuses].toSorted((one, other) => one - other).map(String);
  expect(ascending(seenStatuses.search)).toEqual(Object.keys(paths["/v1/serp/search"].post.responses));
  expect(ascending(seenStatuses.usage)).toEqual(Object.keys(paths["/v1/usage"].get.responses));
});
