import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sendRaw } from "../harness/clients/raw-http.ts";
import { endlessWindow, enqueuedSearches, expectNoTrace, refusalIn } from "../harness/fixtures/refusals.ts";
import { type Answer, type Organization, Service } from "../harness/processes/service.ts";

/** Rows 45 to 61 of the table of bad inputs: what the body is, before anybody looks at its fields. */

let service: Service;
let organization: Organization;
beforeAll(async () => {
  service = await Service.start();
  organization = await service.organization({ terms: endlessWindow });
});
afterAll(() => service.stop());

const right = '{"keyword":"a"}';
const mebibyte = 1024 * 1024;

/** Posts bytes, so that fetch adds no Content-Type of its own. */
async function post(body: string | Buffer, headers: Record<string, string> = {}): Promise<Answer> {
  return service.send("/v1/serp/search", {
    method: "POST",
    headers: { authorization: `Bearer ${organization.token}`, ...headers },
    body: new Uint8Array(Buffer.from(body)),
  });
}

const json = { "content-type": "application/json" };
const packed = (encoding: string) => ({ ...json, "content-encoding": encoding });

interface Row {
  row: number;
  title: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
  reason: string;
}

const types: Row[] = [
  { row: 45, title: "no Content-Type", headers: {}, reason: "content_type_not_json" },
  ...["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json, text/plain"].map(
    (type) => ({
      row: 45,
      title: `the Content-Type ${type}`,
      headers: { "content-type": type },
      reason: "content_type_not_json",
    }),
  ),
  ...["iso-8859-1", "bogus", "utf-16"].map((charset) => ({
    row: charset === "utf-16" ? 47 : 46,
    title: `the charset ${charset}`,
    headers: { "content-type": `application/json; charset=${charset}` },
    reason: "charset_not_utf8",
  })),
  {
    row: 55,
    title: "a caller who takes only HTML",
    headers: { ...json, accept: "text/html" },
    reason: "json_not_accepted",
  },
];

const encodings: Row[] = [
  { row: 48, title: "a body packed with zstd", headers: packed("zstd"), reason: "content_encoding_unsupported" },
  { row: 48, title: "a body packed twice", headers: packed("gzip, gzip"), reason: "content_encoding_unsupported" },
  { row: 49, title: "a body that is gzip by name only", headers: packed("gzip"), reason: "body_unreadable" },
  {
    row: 50,
    title: "48 kB of gzip that hold 50 MB",
    body: gzipSync(Buffer.alloc(50 * mebibyte)),
    headers: packed("gzip"),
    reason: "body_too_large",
  },
  {
    row: 50,
    title: "1 kB of gzip that holds 1 MB",
    body: gzipSync(Buffer.alloc(mebibyte)),
    headers: packed("gzip"),
    reason: "body_too_large",
  },
  { row: 51, title: "a body of 16 KiB and a byte", body: right.padEnd(16 * 1024 + 1), reason: "body_too_large" },
  { row: 51, title: "a body of 100 kB", body: right.padEnd(100_000), reason: "body_too_large" },
];

const contents: Row[] = [
  { row: 52, title: "an empty body", body: "", reason: "body_missing" },
  ...['{"a":', '{"keyword":"a",}', '{"keyword":NaN}', '{"keyword":"a"}//', "{'keyword':'a'}", '{"keyword":"a"}{}'].map(
    (body) => ({ row: 53, title: `the body ${body}`, body, reason: "body_not_json" }),
  ),
  {
    row: 60,
    title: "a byte that is not UTF-8",
    body: Buffer.from('{"keyword":"\xff"}', "latin1"),
    reason: "body_not_utf8",
  },
  {
    row: 60,
    title: "a surrogate half in UTF-8",
    body: Buffer.from('{"keyword":"\xed\xa0\x80"}', "latin1"),
    reason: "body_not_utf8",
  },
];

test.each([...types, ...encodings, ...contents])("$title is refused and costs nothing", async (row) => {
  const answer = await expectNoTrace(service, organization, () => post(row.body ?? right, row.headers ?? json));
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { reason: row.reason } });
});

const deep = "[".repeat(2_500) + "]".repeat(2_500);
const shapes = [
  ...['"x"', "null", "1", "[]", '[{"keyword":"a"}]'].map((body) => ({ row: 54, title: body, body, path: "" })),
  { row: 56, title: "2,500 arrays in each other", body: `{"keyword":${deep}}`, path: "keyword" },
  { row: 57, title: "__proto__", body: '{"keyword":"a","__proto__":{"isAdmin":true}}', path: "__proto__" },
  {
    row: 58,
    title: "constructor",
    body: '{"keyword":"a","constructor":{"prototype":{"isAdmin":true}}}',
    path: "constructor",
  },
];

test.each(shapes)("$title is no search, and the answer names the place", async ({ body, path }) => {
  const answer = await expectNoTrace(service, organization, () => post(body, json));
  const issues = [{ path, message: expect.any(String) }];
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { issues } });
});

const unending = [
  { title: "declared", framing: "Content-Length: 100000000", begin: "" },
  {
    title: "sent in chunks without an end",
    framing: "Transfer-Encoding: chunked",
    begin: `fffff\r\n${"a".repeat(20_000)}`,
  },
];

test.each(unending)("a body that is too large is refused before it has come: $title", async ({ framing, begin }) => {
  const lines = ["POST /v1/serp/search HTTP/1.1", "Host: a", "Content-Type: application/json", framing];
  const head = [...lines, `Authorization: Bearer ${organization.token}`, "", begin].join("\r\n");
  const answer = await expectNoTrace(service, organization, async () => {
    const { answers, closed } = await sendRaw(service.apis[0]?.url ?? "", head);
    expect(closed).toBe(true);
    return answers[0];
  });
  expect(refusalIn(answer)).toEqual({ code: "bad_request", details: { reason: "body_too_large" } });
});

const taken = [
  { row: 59, title: "of a key that stands twice the last one counts", body: '{"keyword":"b","keyword":"a"}' },
  { row: 61, title: "a byte order mark is allowed", body: `\ufeff${right}` },
  { row: 51, title: "a body of exactly 16 KiB is allowed", body: right.padEnd(16 * 1024) },
  { row: 46, title: "utf-8 may be named", headers: { "content-type": 'Application/JSON; charset="UTF-8"' } },
  { row: 49, title: "gzip is unpacked", body: gzipSync(right), headers: packed("gzip") },
  { row: 55, title: "anything accepted is JSON too", headers: { ...json, accept: "text/html, */*;q=0.1" } },
];

test.each(taken)("$title", async ({ body, headers }) => {
  const answer = await post(body ?? right, headers ?? json);
  expect(answer).toMatchObject({ status: 200, body: { query: { keyword: "a" } } });
  expect(await enqueuedSearches(service)).toContain(answer.body.requestId);
});
