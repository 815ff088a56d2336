import { expect, test } from "vitest";
import { sendRaw } from "../../harness/clients/raw-http.ts";
import { expectNoTrace, refusalIn } from "../../harness/fixtures/refusals.ts";
import type { Answer } from "../../harness/processes/service.ts";
import { organization, service } from "./fixture.ts";

/** The fields of a search, and its Idempotency-Key. */

/** Posts JSON text unchanged, so that numbers reach the API as they were written. */
async function postText(body: string): Promise<Answer> {
  return service.send("/v1/serp/search", {
    method: "POST",
    headers: { authorization: `Bearer ${organization.token}`, "content-type": "application/json" },
    body,
  });
}

const field = (path: string, ...values: unknown[]) =>
  values.map((value) => ({ path, shown: JSON.stringify(value).slice(0, 40), body: bodyWith(path, value) }));
const bodyWith = (path: string, value: unknown) => JSON.stringify({ keyword: "a", [path]: value });
const written = (path: string, ...values: string[]) =>
  values.map((shown) => ({ path, shown, body: `{"keyword":"a","${path}":${shown}}` }));

const emoji = "\u{1f600}";
const wrong = [
  { path: "keyword", shown: "nothing", body: "{}" },
  ...field("keyword", "", "   ", "\u200b", "\u200b\u2060\ufeff", "\u3164", "\u00ad"),
  ...field("keyword", "a\0b", "a\u0007b", "a\nb", "a\u0085b", "a\u202eb", "a\u2066b"),
  ...written("keyword", '"a\\ud800b"', '"\\udc00"'),
  ...field("keyword", "a".repeat(701), emoji.repeat(701)),
  ...field("keyword", 1, ["a"], { a: 1 }, null, true),
  ...field("engine", "", " ", null, 1),
  ...written("depth", "0", "-1", "1.5", "101", "1e400", '"10"', "9007199254740993", "null"),
  ...field("location", "us' or '1'='1", "${7*7}", "%00", "Atlantis", "", "a".repeat(256)),
  ...field("language", "../../", "xx-XX-Klingon", "", null),
  ...field("device", "tablet", "Desktop", null),
  ...field("targetDomain", "localhost", "*.example.com", "user@example.com", "127.0.0.1", ""),
  ...field("types", [], "organic", null, {}, Array(16).fill("organic")),
  ...field("format", "short", "Compact", "", null, ["compact"]),
  ...field("callback", "http://169.254.169.254/"),
  ...field("proxy", "http://example.com:3128"),
  ...field("costMils", 0),
  ...field("orgId", "org_01h455vb4pex5vsknk084sn02q"),
  ...field("Keyword", "b"),
];

test.each(wrong)("$path as $shown is rejected by name and leaves no trace", async ({ path, body }) => {
  const answer = await expectNoTrace(service, organization, () => postText(body));
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { issues: expect.any(Array) } });
  // One field can have two issues.
  expect(new Set(answer.body.error.details.issues.map((issue: { path: string }) => issue.path))).toEqual(
    new Set([path]),
  );
});

test("an error lists every invalid field", async () => {
  const answer = await postText('{"keyword":"","depth":0,"device":"tv","costMils":0}');
  const paths = answer.body.error.details.issues.map((issue: { path: string }) => issue.path);
  expect(paths.toSorted()).toEqual(["costMils", "depth", "device", "keyword"]);
});

test.each([
  { title: "700 characters of four bytes", body: bodyWith("keyword", emoji.repeat(700)) },
  { title: "the marks LRM and RLM", body: bodyWith("keyword", "\u200ea\u200f") },
  { title: "the depth 1.0", body: '{"keyword":"a","depth":1.0}' },
])("a keyword or depth with $title is accepted", async ({ body }) => {
  expect(await postText(body)).toMatchObject({ status: 200 });
});

test("punctuation around a country's name is dropped, and the provider does not get it", async () => {
  const answer = await postText(bodyWith("location", "us'--"));
  expect(answer).toMatchObject({ status: 200, body: { query: { location: "United States" } } });
});

const engines = [
  "bing",
  "\uff42\uff49\uff4e\uff47",
  "BING",
  " google",
  "Google",
  "__proto__",
  "constructor",
  "toString",
];

test.each(engines)("the engine %s is not implemented", async (engine) => {
  const answer = await expectNoTrace(service, organization, () => postText(bodyWith("engine", engine)));
  expect(refusalIn(answer)).toEqual({ code: "not_implemented", details: { engine, supported: ["google"] } });
});

const keyHeaders = [
  { title: "empty", lines: ["Idempotency-Key:"] },
  { title: "256 characters long", lines: [`Idempotency-Key: ${"k".repeat(256)}`] },
  { title: "sent twice", lines: ["Idempotency-Key: k", "Idempotency-Key: k"] },
  { title: "not ASCII", lines: ["Idempotency-Key: k\xe9y"] },
  { title: "two words", lines: ["Idempotency-Key: k k"] },
];

function searchWith(lines: string[]) {
  const body = '{"keyword":"a"}';
  const head = ["POST /v1/serp/search HTTP/1.1", "Host: a", "Content-Type: application/json", ...lines];
  head.push(`Authorization: Bearer ${organization.token}`, `Content-Length: ${body.length}`, "", body);
  return sendRaw(service.apis[0]?.url ?? "", head.join("\r\n"));
}

test.each(keyHeaders)("an Idempotency-Key that is $title is rejected", async ({ lines }) => {
  const answer = await expectNoTrace(service, organization, async () => (await searchWith(lines)).answers[0]);
  const issues = [{ path: "Idempotency-Key", message: expect.any(String) }];
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { issues } });
});

test("an Idempotency-Key with a line break is malformed HTTP", async () => {
  const answer = await expectNoTrace(
    service,
    organization,
    async () => (await searchWith(["Idempotency-Key: k\n k"])).answers[0],
  );
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { reason: "malformed_http" } });
});

test("an Idempotency-Key of 255 visible characters is accepted", async () => {
  expect(await service.search(organization.token, { keyword: "a" }, { key: "~".repeat(255) })).toMatchObject({
    status: 200,
  });
});
