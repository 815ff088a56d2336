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

interface Sent {
  body?: string | Buffer;
  headers?: Record<string, string>;
}
type Row = [title: string, reason: string, sent: Sent];

const types: Row[] = [
  ["no Content-Type", "content_type_not_json", { headers: {} }],
  ...["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json, text/plain"].map(
    (type): Row => [`the Content-Type ${type}`, "content_type_not_json", { headers: { "content-type": type } }],
  ),
  ...["iso-8859-1", "bogus", "utf-16"].map((charset): Row => {
    const headers = { "content-type": `application/json; charset=${charset}` };
    return [`the charset ${charset}`, "charset_not_utf8", { headers }];
  }),
  ...["text/html", "application/json;q=0, */*", "application/json; charset=utf-16"].map(
    (accept): Row => [`the Accept header ${accept}`, "json_not_accepted", { headers: { ...json, accept } }],
  ),
];

const inGzip = (bytes: number): Sent => ({ body: gzipSync(Buffer.alloc(bytes)), headers: encoded("gzip") });

const encodings: Row[] = [
  ["a body in zstd", "content_encoding_unsupported", { headers: encoded("zstd") }],
  ["a body in br", "content_encoding_unsupported", { headers: encoded("br") }],
  ["a body compressed twice", "content_encoding_unsupported", { headers: encoded("gzip, gzip") }],
  ["a body that is declared as gzip but is not", "body_unreadable", { headers: encoded("gzip") }],
  ["48 kB of gzip that inflate to 50 MB", "body_too_large", inGzip(50 * mebibyte)],
  ["1 kB of gzip that inflates to 1 MB", "body_too_large", inGzip(mebibyte)],
  ["a body of 16 KiB and a byte", "body_too_large", { body: validBody.padEnd(16 * 1024 + 1) }],
  ["a body of 100 kB", "body_too_large", { body: validBody.padEnd(100_000) }],
];

const contents: Row[] = [
  ["an empty body", "body_missing", { body: "" }],
  ...['{"a":', '{"keyword":"a",}', '{"keyword":NaN}', '{"keyword":"a"}//', "{'keyword':'a'}", '{"keyword":"a"}{}'].map(
    (body): Row => [`the body ${body}`, "body_not_json", { body }],
  ),
  ["a byte that is not UTF-8", "body_not_utf8", { body: Buffer.from('{"keyword":"\xff"}', "latin1") }],
  ["a surrogate half in UTF-8", "body_not_utf8", { body: Buffer.from('{"keyword":"\xed\xa0\x80"}', "latin1") }],
];

test.each([...types, ...encodings, ...contents])("%s is rejected and leaves no trace", async (_, reason, sent) => {
  const { body = validBody, headers = json } = sent;
  const answer = await expectNoTrace(service, organization, () => post(body, headers));
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { reason } });
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

const accepted: [title: string, sent: Sent][] = [
  ["a duplicate key counts with its last value", { body: '{"keyword":"b","keyword":"a"}' }],
  ["a byte order mark is allowed", { body: `\ufeff${validBody}` }],
  ["a body of exactly 16 KiB is allowed", { body: validBody.padEnd(16 * 1024) }],
  [
    "the charset utf-8 is allowed, in any case and quoted",
    { headers: { "content-type": 'Application/JSON; charset="UTF-8"' } },
  ],
  ["a gzip body is decompressed", { body: gzipSync(validBody), headers: encoded("gzip") }],
  ...[
    "text/html, */*;q=0.1",
    "application/json",
    "application/json; charset=utf-8",
    'Application/JSON;charset="UTF-8"',
  ].map((accept): [string, Sent] => [`the Accept header ${accept} allows JSON`, { headers: { ...json, accept } }]),
];

test.each(accepted)("%s", async (_, { body = validBody, headers = json }) => {
  const answer = await post(body, headers);
  expect(answer).toMatchObject({ status: 200, body: { query: { keyword: "a" } } });
  expect(await enqueuedSearches(service)).toContain(answer.body.requestId);
});
