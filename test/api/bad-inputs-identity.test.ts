import { afterAll, beforeAll, expect, test } from "vitest";
import { publishIdentityChange, setSuspended } from "../../shared/organizations/organizations.ts";
import { issueToken, newToken, revokeToken } from "../../shared/organizations/tokens.ts";
import { type Exchange, sendRaw } from "../harness/clients/raw-http.ts";
import { endlessWindow, expectNoTrace, refusalIn } from "../harness/fixtures/refusals.ts";
import { type Organization, Service } from "../harness/processes/service.ts";

/** Rows 30 to 44 of the table of bad inputs: who asks. Each carries a search that would otherwise be right. */

let service: Service;
let organization: Organization;
let revoked: string;
let expired: string;
beforeAll(async () => {
  service = await Service.start({ workers: 0 });
  organization = await service.organization({ terms: endlessWindow });
  revoked = await tokenOf(async (tokenId) => void (await revokeToken(service.database, tokenId)));
  expired = await tokenOf((tokenId) =>
    service.database.query("update tokens set expires_at = now() - interval '1 second' where id = $1", [tokenId]),
  );
});
afterAll(() => service.stop());

/** A token that was good until something was done to it. */
async function tokenOf(spoil: (tokenId: string) => Promise<unknown>): Promise<string> {
  const issued = await issueToken(service.database, organization.organizationId);
  if (!issued) throw new Error("no token");
  await spoil(issued.tokenId);
  return issued.token;
}

const body = '{"keyword":"a"}';

function search(path: string, headers: string[], content = body): Promise<Exchange> {
  const lines = [`POST ${path} HTTP/1.1`, "Host: a", "Content-Type: application/json", ...headers];
  return sendRaw(service.apis[0]?.url ?? "", [...lines, `Content-Length: ${content.length}`, "", content].join("\r\n"));
}

/** `seen`: whether a token was sent, in the eyes of RFC 6750. */
interface Row {
  row: number;
  title: string;
  headers: (token: string) => string[];
  seen?: boolean;
  path?: (token: string) => string;
  body?: (token: string) => string;
}

const otherWays: Row[] = [
  { row: 30, title: "no Authorization", headers: () => [] },
  { row: 31, title: "the scheme Basic", headers: (token) => [`Authorization: Basic ${btoa(`${token}:`)}`] },
  { row: 32, title: "a scheme alone", headers: () => ["Authorization: Bearer"] },
  { row: 32, title: "a scheme and a space", headers: () => ["Authorization: Bearer "] },
  { row: 32, title: "two spaces", headers: (token) => [`Authorization: Bearer  ${token}`] },
  { row: 32, title: "a tab between scheme and token", headers: (token) => [`Authorization: Bearer\t${token}`] },
  { row: 34, title: "two tokens in one header", headers: (token) => [`Authorization: Bearer ${token} ${token}`] },
  {
    row: 34,
    title: "two credentials in one header",
    headers: (token) => [`Authorization: Bearer ${token}, Bearer ${token}`],
  },
  {
    row: 40,
    title: "a token in the query string",
    headers: () => [],
    path: (token) => `/v1/serp/search?access_token=${token}`,
  },
  {
    row: 40,
    title: "a token in the body",
    headers: () => [],
    body: (token) => JSON.stringify({ keyword: "a", access_token: token }),
  },
  { row: 40, title: "a token in a cookie", headers: (token) => [`Cookie: token=${token}; access_token=${token}`] },
];

const bad = (row: number, title: string, token: () => string): Row => ({
  row,
  title,
  headers: () => [`Authorization: Bearer ${token()}`],
  seen: true,
});

const badTokens: Row[] = [
  {
    row: 33,
    title: "two Authorization headers",
    headers: (token) => [`Authorization: Bearer ${token}`, `Authorization: Bearer ${token}`],
    seen: true,
  },
  bad(35, "bytes that are no text", () => "smk_\xff\xfe"),
  bad(36, "a token that nearly fills the head", () => "smk_".padEnd(7_900, "a")),
  bad(37, "a wrong checksum", () => organization.token.slice(0, -1) + (organization.token.endsWith("0") ? "1" : "0")),
  bad(37, "a token in capitals", () => organization.token.toUpperCase()),
  bad(38, "a right checksum that nobody issued, as another environment's token has", newToken),
  bad(39, "a revoked token", () => revoked),
  bad(39, "an expired token", () => expired),
];

test.each([...otherWays, ...badTokens])("$title is answered 401 and nothing else", async (row) => {
  const { token } = organization;
  const answer = await expectNoTrace(service, organization, async () => {
    const path = row.path?.(token) ?? "/v1/serp/search";
    return (await search(path, row.headers(token), row.body?.(token))).answers[0];
  });
  expect(refusalIn(answer)).toEqual({ code: "unauthenticated", details: {} });
  expect(answer?.headers.get("www-authenticate")).toBe(row.seen ? 'Bearer error="invalid_token"' : "Bearer");
});

test("the scheme may be written in any case", async () => {
  for (const scheme of ["bearer", "BEARER"]) {
    const answer = await service.send("/v1/usage", { headers: { authorization: `${scheme} ${organization.token}` } });
    expect(answer.status).toBe(200);
  }
});

test("blanks behind a token belong to the line and not to the token (RFC 9110 5.5, against row 34)", async () => {
  const { answers } = await search("/v1/serp/search", [`Authorization: Bearer ${organization.token}\t`]);
  expect(refusalIn(answers[0])).toMatchObject({ code: "unavailable" });
});

test("a token of more than 8 kB does not get past the head", async () => {
  const { answers } = await search("/v1/serp/search", [`Authorization: Bearer ${"a".repeat(8_200)}`]);
  expect(refusalIn(answers[0])).toEqual({ code: "bad_request", status: 431, details: { reason: "headers_too_large" } });
});

test("a suspended organization is known and may not search (contract, against row 41: 402)", async () => {
  const suspended = await service.organization({ terms: endlessWindow });
  await setSuspended(service.database, suspended.organizationId, true);
  await publishIdentityChange(service.redis);
  const answer = await expectNoTrace(service, suspended, () => service.search(suspended.token, { keyword: "a" }));
  expect(refusalIn(answer)).toEqual({
    code: "plan_required",
    details: { plan: expect.any(String), action: "upgrade", reason: "suspended" },
  });
});

test("without a token not even the beginning of a large body is awaited", async () => {
  const head = ["POST /v1/serp/search HTTP/1.1", "Host: a", "Content-Length: 100000000", "", ""].join("\r\n");
  const { answers, closed } = await sendRaw(service.apis[0]?.url ?? "", head);
  expect(refusalIn(answers[0])).toEqual({ code: "unauthenticated", details: {} });
  expect(closed).toBe(true);
});

test.each([
  { title: "an engine that is not implemented", content: '{"keyword":"a","engine":"bing"}' },
  { title: "a field that is wrong", content: '{"keyword":""}' },
  { title: "a body that is no JSON", content: "{" },
])("without a token nobody learns of $title", async ({ content }) => {
  for (const headers of [[], [`Authorization: Bearer ${newToken()}`]]) {
    const { answers } = await search("/v1/serp/search", headers, content);
    expect(refusalIn(answers[0])).toEqual({ code: "unauthenticated", details: {} });
  }
});

test("an address that guesses tokens shuts nobody out (contract, against row 44: no limit per address)", async () => {
  const guesses = await Promise.all(Array.from({ length: 100 }, () => service.usage(newToken())));
  for (const guess of guesses) expect(refusalIn(guess)).toMatchObject({ code: "unauthenticated" });
  expect(await service.usage(organization.token)).toMatchObject({ status: 200 });
});
