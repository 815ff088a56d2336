import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { sendRaw } from "../../harness/clients/raw-http.ts";
import { enqueuedSearches, expectNoTrace, refusalIn } from "../../harness/fixtures/refusals.ts";
import type { Answer } from "../../harness/processes/service.ts";
import { organization, service } from "./fixture.ts";

/** The body as a whole, before its fields are validated. */

const validBody = '{"keyword":"a"}';
const mebibyte = 1024 * 1024;

/** Posts bytes, so that fetch adds no Content-Type. */
async function post(body: string | Buffer, headers: Record<string, string> = {}): Promise<Answer> {
  return service.send("/v1/serp/search", {
    method: "POST",
    headers: { authorization: `Bearer ${organization.token}`, ...headers },
    body: new Uint8Array(Buffer.from(body)),
  });
}

const json = { "content-type": "application/json" };
const encoded = (encoding: string) => ({ ...json, "content-encoding": encoding });

interface Row {
  title: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
  reason: string;
}

const types: Row[] = [
  { title: "no Content-Type", headers: {}, reason: "content_type_not_json" },
  ...["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json, text/plain"].map(
    (type) => ({
      title: `the Content-Type ${type}`,
      headers: { "content-type": type },
      reason: "content_type_not_json",
    }),
  ),
  ...["iso-8859-1", "bogus", "utf-16"].map((charset) => ({
    title: `the charset ${charset}`,
    headers: { "content-type": `application/json; charset=${charset}` },
    reason: "charset_not_utf8",
  })),
  ...["text/html", "application/json;q=0, */*", "application/json; charset=utf-16"].map((accept) => ({
    title: `the Accept header ${accept}`,
    headers: { ...json, accept },
    reason: "json_not_accepted",
  })),
];

const encodings: Row[] = [
  ...["zstd", "br"].map((encoding) => ({
    title: `a body in ${encoding}`,
    headers: encoded(encoding),
    reason: "content_encoding_unsupported",
  })),
  { title: "a body compressed twice", headers: encoded("gzip, gzip"), reason: "content_encoding_unsupported" },
  { title: "a body that is declared as gzip but is not", headers: encoded("gzip"), reason: "body_unreadable" },
  {
    title: "48 kB of gzip that inflate to 50 MB",
    body: gzipSync(Buffer.alloc(50 * mebibyte)),
    headers: encoded("gzip"),
    reason: "body_too_large",
  },
  {
    title: "1 kB of gzip that inflates to 1 MB",
    body: gzipSync(Buffer.alloc(mebibyte)),
    headers: encoded("gzip"),
    reason: "body_too_large",
  },
  { title: "a body of 16 KiB and a byte", body: validBody.padEnd(16 * 1024 + 1), reason: "body_too_large" },
  { title: "a body of 100 kB", body: validBody.padEnd(100_000), reason: "body_too_large" },
];

const contents: Row[] = [
  { title: "an empty body", body: "", reason: "body_missing" },
  ...['{"a":', '{"keyword":"a",}', '{"keyword":NaN}', '{"keyword":"a"}//', "{'keyword':'a'}", '{"keyword":"a"}{}'].map(
    (body) => ({ title: `the body ${body}`, body, reason: "body_not_json" }),
  ),
  { title: "a byte that is not UTF-8", body: Buffer.from('{"keyword":"\xff"}', "latin1"), reason: "body_not_utf8" },
  {
    title: "a surrogate half in UTF-8",
    body: Buffer.from('{"keyword":"\xed\xa0\x80"}', "latin1"),
    reason: "body_not_utf8",
  },
];

test.each([...types, ...encodings, ...contents])("$title is rejected and leaves no trace", async (row) => {
  const answer = await expectNoTrace(service, organization, () => post(row.body ?? validBody, row.headers ?? json));
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { reason: row.reason } });
});

const deep = "[".repeat(2_500) + "]".repeat(2_500);
const shapes = [
  ...['"x"', "null", "1", "[]", '[{"keyword":"a"}]'].map((body) => ({ title: body, body, path: "" })),
  { title: "2,500 nested arrays", body: `{"keyword":${deep}}`, path: "keyword" },
  { title: "__proto__", body: '{"keyword":"a","__proto__":{"isAdmin":true}}', path: "__proto__" },
  { title: "constructor", body: '{"keyword":"a","constructor":{"prototype":{"isAdmin":true}}}', path: "constructor" },
];

test.each(shapes)("$title is not a search, and the error names the path", async ({ body, path }) => {
  const answer = await expectNoTrace(service, organization, () => post(body, json));
  const issues = [{ path, message: expect.any(String) }];
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { issues } });
});

const oversized = [
  { title: "declared", framing: "Content-Length: 100000000", begin: "" },
  { title: "sent in chunks", framing: "Transfer-Encoding: chunked", begin: `fffff\r\n${"a".repeat(20_000)}` },
];

test.each(oversized)(
  "a body that is too large is rejected before all of it has arrived: $title",
  async ({ framing, begin }) => {
    const lines = ["POST /v1/serp/search HTTP/1.1", "Host: a", "Content-Type: application/json", framing];
    const head = [...lines, `Authorization: Bearer ${organization.token}`, "", begin].join("\r\n");
    const answer = await expectNoTrace(service, organization, async () => {
      const { answers, closed } = await sendRaw(service.apis[0]?.url ?? "", head);
      expect(closed).toBe(true);
      return answers[0];
    });
    expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { reason: "body_too_large" } });
  },
);

const accepted: Omit<Row, "reason">[] = [
  { title: "a duplicate key counts with its last value", body: '{"keyword":"b","keyword":"a"}' },
  { title: "a byte order mark is allowed", body: `\ufeff${validBody}` },
  { title: "a body of exactly 16 KiB is allowed", body: validBody.padEnd(16 * 1024) },
  {
    title: "the charset utf-8 is allowed, in any case and quoted",
    headers: { "content-type": 'Application/JSON; charset="UTF-8"' },
  },
  { title: "a gzip body is decompressed", body: gzipSync(validBody), headers: encoded("gzip") },
  ...[
    "text/html, */*;q=0.1",
    "application/json",
    "application/json; charset=utf-8",
    'Application/JSON;charset="UTF-8"',
  ].map((accept) => ({ title: `the Accept header ${accept} allows JSON`, headers: { ...json, accept } })),
];

test.each(accepted)("$title", async ({ body, headers }) => {
  const answer = await post(body ?? validBody, headers ?? json);
  expect(answer).toMatchObject({ status: 200, body: { query: { keyword: "a" } } });
  expect(await enqueuedSearches(service)).toContain(answer.body.requestId);
});
