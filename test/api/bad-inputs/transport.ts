import { expect, test } from "vitest";
import { sendRaw } from "../../harness/clients/raw-http.ts";
import { expectCommonHeaders, expectNoTrace, refusalIn } from "../../harness/fixtures/refusals.ts";
import { organization, service } from "./fixture.ts";

/** Requests that are already invalid as HTTP. */

const body = '{"keyword":"a"}';

const head = (...lines: string[]) => [...lines, `Authorization: Bearer ${organization.token}`, "", ""].join("\r\n");
const usage = (...lines: string[]) => head("GET /v1/usage HTTP/1.1", ...lines);
const search = (...lines: string[]) =>
  head("POST /v1/serp/search HTTP/1.1", "Host: a", "Content-Type: application/json", ...lines);
const filler = (count: number, line: string) => Array.from({ length: count }, () => line);

const urlOf = () => service.apis[0]?.url ?? "";

type Row = [title: string, bytes: string | Buffer, reason: string, status?: number];

const malformed: [title: string, bytes: string | Buffer][] = [
  ["HTTP/9.9", head("GET /v1/usage HTTP/9.9", "Host: a")],
  ["an HTTP/2 preface on HTTP/1", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  [
    "Content-Length together with Transfer-Encoding",
    `${search("Content-Length: 15", "Transfer-Encoding: chunked")}f\r\n${body}\r\n0\r\n\r\n`,
  ],
  ["the two Content-Lengths 15 and 15", search("Content-Length: 15", "Content-Length: 15") + body],
  ["the two Content-Lengths 15 and 16", search("Content-Length: 15", "Content-Length: 16") + body],
  ["the Content-Length +15", search("Content-Length: +15") + body],
  ["the Content-Length -1", search("Content-Length: -1") + body],
  ["the Content-Length 10^20", search("Content-Length: 100000000000000000000") + body],
  [
    "a Transfer-Encoding that does not end in chunked",
    `${search("Transfer-Encoding: chunked, identity")}f\r\n${body}\r\n0\r\n\r\n`,
  ],
  ["a chunk whose size is not a number", `${search("Transfer-Encoding: chunked")}xyz\r\n${body}\r\n0\r\n\r\n`],
  ["bare line feeds", usage("Host: a").replaceAll("\r\n", "\n")],
  ["a folded header", usage("Host: a", "X-Folded: one", " two")],
  ["a space before a colon", usage("Host: a", "X-Spaced : one")],
  ["NUL in a header", usage("Host: a", "X-Null: a\0b")],
  ["a TLS hello", Buffer.from("16030100750100007103035f", "hex")],
  ["random bytes", Buffer.from("00ff13370a0d", "hex")],
  ["the unknown method FOO", head("FOO / HTTP/1.1", "Host: a")],
];

const unsafe: Row[] = [
  ["no Host", usage(), "one_host_header_expected"],
  ["two Hosts", usage("Host: a", "Host: b"), "one_host_header_expected"],
  ["HTTP/1.0 without a Host", head("GET /v1/usage HTTP/1.0"), "one_host_header_expected"],
  ...["xchunked", "gzip, chunked"].map(
    (coding): Row => [
      `the Transfer-Encoding ${coding}`,
      `${search(`Transfer-Encoding: ${coding}`)}f\r\n${body}\r\n0\r\n\r\n`,
      "transfer_encoding_not_chunked",
    ],
  ),
  ["headers of more than 8 kB", usage("Host: a", `X-Large: ${"a".repeat(8_200)}`), "headers_too_large", 431],
  ["1,500 headers of more than 8 kB", usage("Host: a", ...filler(1_500, "X-Small: 1")), "headers_too_large", 431],
  ["1,500 headers that fit into 8 kB", usage("Host: a", ...filler(1_500, "a:")), "too_many_headers"],
  ["an unknown expectation", search("Expect: 200-ok", "Content-Length: 15") + body, "expectation_unknown", 417],
];

const rows = [...malformed.map(([title, bytes]): Row => [title, bytes, "malformed_http"]), ...unsafe];

test.each(rows)("%s is rejected, leaves no trace and closes the connection", async (_, bytes, reason, status) => {
  const answer = await expectNoTrace(service, organization, async () => {
    const { answers, closed } = await sendRaw(urlOf(), bytes);
    expect(answers).toHaveLength(1);
    expect(closed).toBe(true);
    return answers[0];
  });
  expect(refusalIn(answer)).toEqual({ code: "bad_request", status, details: { reason } });
});

test.each([
  { title: "its length", framing: "Content-Length: 100", begin: body },
  { title: "its last chunk", framing: "Transfer-Encoding: chunked", begin: `f\r\n${body}\r\n` },
])("a body that ends before $title is rejected", async ({ framing, begin }) => {
  const answer = await expectNoTrace(service, organization, async () => {
    const { answers } = await sendRaw(urlOf(), search(framing) + begin, { isHalfClosed: true });
    return answers[0];
  });
  expect(refusalIn(answer)).toMatchObject({ code: "bad_request", details: { reason: "malformed_http" } });
});

test("the method QUERY is not allowed", async () => {
  const { answers } = await sendRaw(urlOf(), head("QUERY /v1/usage HTTP/1.1", "Host: a"));
  expect(refusalIn(answers[0])).toMatchObject({ code: "method_not_allowed" });
});

test("CONNECT closes the connection without a response", async () => {
  const { answers, closed } = await sendRaw(urlOf(), head("CONNECT a:443 HTTP/1.1", "Host: a"));
  expect({ answers, closed }).toEqual({ answers: [], closed: true });
});

test("a request target with a host is routed by its path, and its host is ignored", async () => {
  const { answers } = await sendRaw(urlOf(), head("GET http://evil.example/v1/usage HTTP/1.1", "Host: a"));
  expect(answers).toMatchObject([{ status: 200 }]);
  expect(JSON.stringify([...(answers[0]?.headers ?? [])])).not.toContain("evil");
});

test.each(["h2c", "websocket"])("an upgrade to %s is ignored and the request answered", async (protocol) => {
  const { answers } = await sendRaw(urlOf(), usage("Host: a", "Connection: Upgrade", `Upgrade: ${protocol}`));
  expect(answers).toMatchObject([{ status: 200, body: { plan: expect.any(String) } }]);
});

test("two pipelined requests are answered in order", async () => {
  const both = usage("Host: a") + head("GET /nowhere HTTP/1.1", "Host: a");
  const { answers } = await sendRaw(urlOf(), both, { answers: 2 });
  expect(answers.map(({ status }) => status)).toEqual([200, 404]);
  for (const answer of answers) expectCommonHeaders(answer);
});
