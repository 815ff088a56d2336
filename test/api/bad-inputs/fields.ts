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

const bodyWith = (path: string, value: unknown) => JSON.stringify({ keyword: "a", [path]: value });

const emoji = "\u{1f600}";
/** One value of each field, or what only a request can have; query.test.ts has the others. */
const wrong = [
  { path: "keyword", body: "{}" },
  { path: "keyword", body: '{"keyword":"a\\ud800b"}' },
  { path: "depth", body: '{"keyword":"a","depth":1e400}' },
  { path: "Keyword", body: '{"keyword":"a","Keyword":"b"}' },
  ...Object.entries({
    keyword: "a\0b",
    engine: "",
    location: "us' or '1'='1",
    language: "../../",
    device: "tablet",
    targetDomain: "localhost",
    types: [],
    format: "short",
    callback: "http://169.254.169.254/",
    orgId: "org_01h455vb4pex5vsknk084sn02q",
  }).map(([path, value]) => ({ path, body: bodyWith(path, value) })),
];

test.each(wrong)("$path in $body is rejected by name and leaves no trace", async ({ path, body }) => {
  const answer = await expectNoTrace(service, organization, () => postText(body));
  const issues = [{ path, message: expect.any(String) }];
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { issues } });
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

test.each(["bing", " google", "Google", "__proto__"])("the engine %s is not implemented", async (engine) => {
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
