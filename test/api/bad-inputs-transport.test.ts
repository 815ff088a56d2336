import { afterAll, beforeAll, expect, test } from "vitest";
import { sendRaw } from "../harness/clients/raw-http.ts";
import { endlessWindow, expectCommonHeaders, expectNoTrace, refusalIn } from "../harness/fixtures/refusals.ts";
import { type Organization, Service } from "../harness/processes/service.ts";

/** Rows 1 to 22 of the table of bad inputs: what is wrong already as HTTP. */

let service: Service;
let organization: Organization;
beforeAll(async () => {
  service = await Service.start({ workers: 0 });
  organization = await service.organization({ terms: endlessWindow });
});
afterAll(() => service.stop());

const body = '{"keyword":"a"}';

const head = (...lines: string[]) => [...lines, `Authorization: Bearer ${organization.token}`, "", ""].join("\r\n");
const usage = (...lines: string[]) => head("GET /v1/usage HTTP/1.1", ...lines);
const search = (...lines: string[]) =>
  head("POST /v1/serp/search HTTP/1.1", "Host: a", "Content-Type: application/json", ...lines);
const filler = (count: number, line: string) => Array.from({ length: count }, () => line);

const urlOf = () => service.apis[0]?.url ?? "";

interface Row {
  row: number;
  title: string;
  bytes: () => string | Buffer;
  status?: number;
  reason: string;
}

const malformed: Row[] = [
  { row: 4, title: "HTTP/9.9", bytes: () => head("GET /v1/usage HTTP/9.9", "Host: a"), reason: "malformed_http" },
  {
    row: 4,
    title: "an HTTP/2 preface on HTTP/1",
    bytes: () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    reason: "malformed_http",
  },
  {
    row: 5,
    title: "Content-Length together with Transfer-Encoding",
    bytes: () => `${search("Content-Length: 15", "Transfer-Encoding: chunked")}f\r\n${body}\r\n0\r\n\r\n`,
    reason: "malformed_http",
  },
  ...["15", "16"].map((second) => ({
    row: 6,
    title: `the two Content-Lengths 15 and ${second}`,
    bytes: () => search("Content-Length: 15", `Content-Length: ${second}`) + body,
    reason: "malformed_http",
  })),
  ...["+15", "-1", "100000000000000000000"].map((length) => ({
    row: 7,
    title: `the Content-Length ${length}`,
    bytes: () => search(`Content-Length: ${length}`) + body,
    reason: "malformed_http",
  })),
  {
    row: 8,
    title: "a Transfer-Encoding that does not end in chunked",
    bytes: () => `${search("Transfer-Encoding: chunked, identity")}f\r\n${body}\r\n0\r\n\r\n`,
    reason: "malformed_http",
  },
  {
    row: 8,
    title: "a chunk whose size is no number",
    bytes: () => `${search("Transfer-Encoding: chunked")}xyz\r\n${body}\r\n0\r\n\r\n`,
    reason: "malformed_http",
  },
  ...[
    ["bare line feeds", () => usage("Host: a").replaceAll("\r\n", "\n")] as const,
    ["a folded header", () => usage("Host: a", "X-Folded: one", " two")] as const,
    ["a space before a colon", () => usage("Host: a", "X-Spaced : one")] as const,
    ["NUL in a header", () => usage("Host: a", "X-Null: a\0b")] as const,
  ].map(([title, bytes]) => ({ row: 10, title, bytes, reason: "malformed_http" })),
  {
    row: 16,
    title: "a TLS hello",
    bytes: () => Buffer.from("16030100750100007103035f", "hex"),
    reason: "malformed_http",
  },
  { row: 16, title: "bytes of any kind", bytes: () => Buffer.from("00ff13370a0d", "hex"), reason: "malformed_http" },
  {
    row: 17,
    title: "the unknown method FOO",
    bytes: () => head("FOO / HTTP/1.1", "Host: a"),
    reason: "malformed_http",
  },
];

const unsafe: Row[] = [
  { row: 1, title: "no Host", bytes: () => usage(), reason: "one_host_header_expected" },
  { row: 2, title: "two Hosts", bytes: () => usage("Host: a", "Host: b"), reason: "one_host_header_expected" },
  {
    row: 3,
    title: "HTTP/1.0 without a Host",
    bytes: () => head("GET /v1/usage HTTP/1.0"),
    reason: "one_host_header_expected",
  },
  ...(
    [
      [8, "xchunked"],
      [9, "gzip, chunked"],
    ] as const
  ).map(([row, coding]) => ({
    row,
    title: `the Transfer-Encoding ${coding}`,
    bytes: () => `${search(`Transfer-Encoding: ${coding}`)}f\r\n${body}\r\n0\r\n\r\n`,
    reason: "transfer_encoding_not_chunked",
  })),
  {
    row: 11,
    title: "headers of more than 8 kB",
    bytes: () => usage("Host: a", `X-Large: ${"a".repeat(8_200)}`),
    status: 431,
    reason: "headers_too_large",
  },
  {
    row: 12,
    title: "1,500 headers of more than 8 kB",
    bytes: () => usage("Host: a", ...filler(1_500, "X-Small: 1")),
    status: 431,
    reason: "headers_too_large",
  },
  {
    row: 12,
    title: "1,500 headers that fit into 8 kB (contract: 400, a refusal of ours)",
    bytes: () => usage("Host: a", ...filler(1_500, "a:")),
    reason: "too_many_headers",
  },
  {
    row: 20,
    title: "an expectation that nobody knows",
    bytes: () => search("Expect: 200-ok", "Content-Length: 15") + body,
    status: 417,
    reason: "expectation_unknown",
  },
];

test.each([...malformed, ...unsafe])("$title is refused, moves nothing and ends the connection", async (row) => {
  const answer = await expectNoTrace(service, organization, async () => {
    const { answers, closed } = await sendRaw(urlOf(), row.bytes());
    expect(answers).toHaveLength(1);
    expect(closed).toBe(true);
    return answers[0];
  });
  expect(refusalIn(answer)).toEqual({ code: "bad_request", status: row.status, details: { reason: row.reason } });
});

test("the method QUERY is known and not taken", async () => {
  const { answers } = await sendRaw(urlOf(), head("QUERY /v1/usage HTTP/1.1", "Host: a"));
  expect(refusalIn(answers[0])).toMatchObject({ code: "method_not_allowed" });
});

test("CONNECT is closed without a word", async () => {
  const { answers, closed } = await sendRaw(urlOf(), head("CONNECT a:443 HTTP/1.1", "Host: a"));
  expect({ answers, closed }).toEqual({ answers: [], closed: true });
});

test("a whole address in place of a path is served by its path, and its host is not trusted", async () => {
  const { answers } = await sendRaw(urlOf(), head("GET http://evil.example/v1/usage HTTP/1.1", "Host: a"));
  expect(answers).toMatchObject([{ status: 200 }]);
  expect(JSON.stringify([...(answers[0]?.headers ?? [])])).not.toContain("evil");
});

test.each(["h2c", "websocket"])(
  "an upgrade to %s is not taken up: the request is answered as it is",
  async (protocol) => {
    const { answers } = await sendRaw(urlOf(), usage("Host: a", "Connection: Upgrade", `Upgrade: ${protocol}`));
    expect(answers).toMatchObject([{ status: 200, body: { plan: expect.any(String) } }]);
  },
);

test("two requests sent at once are answered in their order", async () => {
  const both = usage("Host: a") + head("GET /nowhere HTTP/1.1", "Host: a");
  const { answers } = await sendRaw(urlOf(), both, { answers: 2 });
  expect(answers.map(({ status }) => status)).toEqual([200, 404]);
  for (const answer of answers) expectCommonHeaders(answer);
});

const drip = { bytes: "a", everyMs: 500 };
const slow = [
  { row: 13, title: "a head", begin: () => "GET /v1/usage HTTP/1.1\r\nHost: a\r\nX-Slow: ", drip },
  { row: 14, title: "a body", begin: () => search("Content-Length: 100"), drip },
  { row: 14, title: "a chunked body", begin: () => `${search("Transfer-Encoding: chunked")}64\r\n`, drip },
  { row: 15, title: "a body that stops before its length", begin: () => search("Content-Length: 100") + body },
  { row: 15, title: "a head that stops", begin: () => "GET /v1/usage HTTP/1.1\r\nHost: a\r\n" },
];

test.concurrent.each(slow)(
  "$title that is sent too slowly is refused within 10 s, and closed",
  async ({ begin, ...row }) => {
    const answer = await expectNoTrace(service, organization, async () => {
      const { answers, closed, tookMs } = await sendRaw(urlOf(), begin(), row.drip && { drip: row.drip });
      expect(answers).toHaveLength(1);
      expect(closed).toBe(true);
      expect(tookMs).toBeLessThan(10_000);
      return answers[0];
    });
    expect(refusalIn(answer)).toEqual({ code: "bad_request", status: 408, details: { reason: "request_too_slow" } });
  },
);
