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

interface Row {
  title: string;
  bytes: () => string | Buffer;
  status?: number;
  reason: string;
}

const malformed: Row[] = [
  { title: "HTTP/9.9", bytes: () => head("GET /v1/usage HTTP/9.9", "Host: a"), reason: "malformed_http" },
  { title: "an HTTP/2 preface on HTTP/1", bytes: () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", reason: "malformed_http" },
  {
    title: "Content-Length together with Transfer-Encoding",
    bytes: () => `${search("Content-Length: 15", "Transfer-Encoding: chunked")}f\r\n${body}\r\n0\r\n\r\n`,
    reason: "malformed_http",
  },
  ...["15", "16"].map((second) => ({
    title: `the two Content-Lengths 15 and ${second}`,
    bytes: () => search("Content-Length: 15", `Content-Length: ${second}`) + body,
    reason: "malformed_http",
  })),
  ...["+15", "-1", "100000000000000000000"].map((length) => ({
    title: `the Content-Length ${length}`,
    bytes: () => search(`Content-Length: ${length}`) + body,
    reason: "malformed_http",
  })),
  {
    title: "a Transfer-Encoding that does not end in chunked",
    bytes: () => `${search("Transfer-Encoding: chunked, identity")}f\r\n${body}\r\n0\r\n\r\n`,
    reason: "malformed_http",
  },
  {
    title: "a chunk whose size is not a number",
    bytes: () => `${search("Transfer-Encoding: chunked")}xyz\r\n${body}\r\n0\r\n\r\n`,
    reason: "malformed_http",
  },
  ...[
    ["bare line feeds", () => usage("Host: a").replaceAll("\r\n", "\n")] as const,
    ["a folded header", () => usage("Host: a", "X-Folded: one", " two")] as const,
    ["a space before a colon", () => usage("Host: a", "X-Spaced : one")] as const,
    ["NUL in a header", () => usage("Host: a", "X-Null: a\0b")] as const,
  ].map(([title, bytes]) => ({ title, bytes, reason: "malformed_http" })),
  { title: "a TLS hello", bytes: () => Buffer.from("16030100750100007103035f", "hex"), reason: "malformed_http" },
  { title: "random bytes", bytes: () => Buffer.from("00ff13370a0d", "hex"), reason: "malformed_http" },
  { title: "the unknown method FOO", bytes: () => head("FOO / HTTP/1.1", "Host: a"), reason: "malformed_http" },
];

const unsafe: Row[] = [
  { title: "no Host", bytes: () => usage(), reason: "one_host_header_expected" },
  { title: "two Hosts", bytes: () => usage("Host: a", "Host: b"), reason: "one_host_header_expected" },
  { title: "HTTP/1.0 without a Host", bytes: () => head("GET /v1/usage HTTP/1.0"), reason: "one_host_header_expected" },
  ...["xchunked", "gzip, chunked"].map((coding) => ({
    title: `the Transfer-Encoding ${coding}`,
    bytes: () => `${search(`Transfer-Encoding: ${coding}`)}f\r\n${body}\r\n0\r\n\r\n`,
    reason: "transfer_encoding_not_chunked",
  })),
  {
    title: "headers of more than 8 kB",
    bytes: () => usage("Host: a", `X-Large: ${"a".repeat(8_200)}`),
    status: 431,
    reason: "headers_too_large",
  },
  {
    title: "1,500 headers of more than 8 kB",
    bytes: () => usage("Host: a", ...filler(1_500, "X-Small: 1")),
    status: 431,
    reason: "headers_too_large",
  },
  {
    title: "1,500 headers that fit into 8 kB",
    bytes: () => usage("Host: a", ...filler(1_500, "a:")),
    reason: "too_many_headers",
  },
  {
    title: "an unknown expectation",
    bytes: () => search("Expect: 200-ok", "Content-Length: 15") + body,
    status: 417,
    reason: "expectation_unknown",
  },
];

test.each([...malformed, ...unsafe])("$title is rejected, leaves no trace and closes the connection", async (row) => {
  const answer = await expectNoTrace(service, organization, async () => {
    const { answers, closed } = await sendRaw(urlOf(), row.bytes());
    expect(answers).toHaveLength(1);
    expect(closed).toBe(true);
    return answers[0];
  });
  expect(refusalIn(answer)).toEqual({ code: "bad_request", status: row.status, details: { reason: row.reason } });
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
