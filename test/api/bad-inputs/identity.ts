import { expect, test } from "vitest";
import { newToken, revokeToken } from "../../../api/tokens/tokens.ts";
import { type Exchange, sendRaw } from "../../harness/clients/raw-http.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { challenges, expectNoTrace, refusalIn } from "../../harness/fixtures/refusals.ts";
import { organization, service } from "./fixture.ts";

/** Tokens. Each request carries a search that is valid otherwise. */

const revoked = await tokenOf(async (tokenId) => void (await revokeToken(service.database, tokenId)));
const expired = await tokenOf((tokenId) =>
  asOwner(service.databaseUrl, (client) =>
    client.query("update tokens set expires_at = now() - interval '1 second' where id = $1", [tokenId]),
  ),
);

/** A valid token that is then made invalid. */
async function tokenOf(invalidate: (tokenId: string) => Promise<unknown>): Promise<string> {
  const { token, tokenId } = await service.issue(organization.organizationId);
  await invalidate(tokenId);
  return token;
}

const body = '{"keyword":"a"}';

function search(path: string, headers: string[], content = body): Promise<Exchange> {
  const lines = [`POST ${path} HTTP/1.1`, "Host: a", "Content-Type: application/json", ...headers];
  return sendRaw(service.apis[0]?.url ?? "", [...lines, `Content-Length: ${content.length}`, "", content].join("\r\n"));
}

/** `seen`: whether the request has a token in the sense of RFC 6750. */
interface Row {
  title: string;
  headers: (token: string) => string[];
  seen?: boolean;
  path?: (token: string) => string;
  body?: (token: string) => string;
}

const otherWays: Row[] = [
  { title: "no Authorization", headers: () => [] },
  { title: "the scheme Basic", headers: (token) => [`Authorization: Basic ${btoa(`${token}:`)}`] },
  { title: "a scheme alone", headers: () => ["Authorization: Bearer"] },
  { title: "a scheme and a space", headers: () => ["Authorization: Bearer "] },
  { title: "two spaces", headers: (token) => [`Authorization: Bearer  ${token}`] },
  { title: "a tab between scheme and token", headers: (token) => [`Authorization: Bearer\t${token}`] },
  { title: "two tokens in one header", headers: (token) => [`Authorization: Bearer ${token} ${token}`] },
  { title: "two credentials in one header", headers: (token) => [`Authorization: Bearer ${token}, Bearer ${token}`] },
  { title: "a token in the query string", headers: () => [], path: (token) => `/v1/serp/search?access_token=${token}` },
  {
    title: "a token in the body",
    headers: () => [],
    body: (token) => JSON.stringify({ keyword: "a", access_token: token }),
  },
  { title: "a token in a cookie", headers: (token) => [`Cookie: token=${token}; access_token=${token}`] },
];

const bad = (title: string, token: () => string): Row => ({
  title,
  headers: () => [`Authorization: Bearer ${token()}`],
  seen: true,
});

const badTokens: Row[] = [
  {
    title: "two Authorization headers",
    headers: (token) => [`Authorization: Bearer ${token}`, `Authorization: Bearer ${token}`],
    seen: true,
  },
  bad("bytes that are not text", () => "smk_\xff\xfe"),
  bad("a token that nearly fills the head", () => "smk_".padEnd(7_900, "a")),
  bad("a wrong checksum", () => organization.token.slice(0, -1) + (organization.token.endsWith("0") ? "1" : "0")),
  bad("a token in capitals", () => organization.token.toUpperCase()),
  bad("a token with a valid checksum that was never issued", newToken),
  bad("a revoked token", () => revoked),
  bad("an expired token", () => expired),
];

test.each([...otherWays, ...badTokens])("$title gets a 401 and leaves no trace", async (row) => {
  const { token } = organization;
  const answer = await expectNoTrace(service, organization, async () => {
    const path = row.path?.(token) ?? "/v1/serp/search";
    return (await search(path, row.headers(token), row.body?.(token))).answers[0];
  });
  expect(refusalIn(answer)).toEqual({ code: "unauthenticated", details: {} });
  expect(answer?.headers.get("www-authenticate")).toBe(row.seen ? challenges.invalid : challenges.missing);
});

test("the scheme Bearer is accepted in any case", async () => {
  for (const scheme of ["bearer", "BEARER"]) {
    const answer = await service.send("/v1/usage", { headers: { authorization: `${scheme} ${organization.token}` } });
    expect(answer.status).toBe(200);
  }
});

test("whitespace after a token is not part of it (RFC 9110, section 5.5)", async () => {
  const { answers } = await search("/v1/serp/search", [`Authorization: Bearer ${organization.token}\t`]);
  expect(answers).toMatchObject([{ status: 200 }]);
});

test("a token of more than 8 kB exceeds the limit of the headers", async () => {
  const { answers } = await search("/v1/serp/search", [`Authorization: Bearer ${"a".repeat(8_200)}`]);
  expect(refusalIn(answers[0])).toEqual({ code: "bad_request", status: 431, details: { reason: "headers_too_large" } });
});

test.each([
  { title: "a token", authorization: async () => [], details: {} },
  {
    title: "the scope",
    authorization: async () => [`Authorization: Bearer ${(await service.organization({ scopes: ["usage"] })).token}`],
    details: { reason: "scope", scope: "search" },
  },
])("without $title the API does not wait for a large body", async ({ authorization, details }) => {
  const head = ["POST /v1/serp/search HTTP/1.1", "Host: a", ...(await authorization())];
  const { answers, closed } = await sendRaw(
    service.apis[0]?.url ?? "",
    [...head, "Content-Length: 100000000", "", ""].join("\r\n"),
  );
  expect(refusalIn(answers[0])).toEqual({ code: "unauthenticated", details });
  expect(closed).toBe(true);
});

test("an address that guesses tokens does not lock out others at that address", async () => {
  for (let guesses = 0; guesses < 100; guesses += 5) {
    const answers = await Promise.all(Array.from({ length: 5 }, () => service.usage(newToken())));
    for (const answer of answers) expect(refusalIn(answer)).toMatchObject({ code: "unauthenticated" });
  }
  expect(await service.usage(organization.token)).toMatchObject({ status: 200 });
});
