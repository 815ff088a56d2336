import { expect, test } from "vitest";
import { sendRaw } from "../../harness/clients/raw-http.ts";
import { expectCommonHeaders, expectNoTrace, refusalIn } from "../../harness/fixtures/refusals.ts";
import type { Answer } from "../../harness/processes/service.ts";
import { organization, service } from "./fixture.ts";

/** Paths and methods. They are checked before the token. */

const authorization = () => ({ authorization: `Bearer ${organization.token}` });

async function ask(method: string, target: string): Promise<Answer | undefined> {
  const lines = [`${method} ${target} HTTP/1.1`, "Host: a", `Authorization: Bearer ${organization.token}`];
  const { answers } = await sendRaw(service.apis[0]?.url ?? "", [...lines, "", ""].join("\r\n"));
  return answers[0];
}

const known = [
  { path: "/v1/serp/search", allow: "POST, OPTIONS" },
  { path: "/v1/usage", allow: "GET, OPTIONS" },
];

const wrongMethods = [
  { method: "GET", ...known[0] },
  { method: "DELETE", ...known[1] },
  { method: "POST", ...known[1] },
  { method: "TRACE", ...known[1] },
  { method: "TRACE", ...known[0] },
  { method: "PUT", ...known[0] },
];

test.each(wrongMethods)(
  "$method $path gets a 405 that lists the allowed methods",
  async ({ method, path = "", allow = "" }) => {
    const answer = await expectNoTrace(service, organization, () => ask(method, path));
    expect(refusalIn(answer)).toEqual({ code: "method_not_allowed", details: {} });
    expect(answer?.headers.get("allow")).toBe(allow);
  },
);

test.each(known)("HEAD $path is not allowed", async ({ path, allow }) => {
  const { status, headers } = await fetch(`${service.apis[0]?.url}${path}`, {
    method: "HEAD",
    headers: authorization(),
  });
  expect(status).toBe(405);
  expect(headers.get("allow")).toBe(allow);
  expectCommonHeaders({ headers });
});

test.each(known)("OPTIONS $path lists the allowed methods, without a token", async ({ path, allow }) => {
  const answer = await service.send(path, { method: "OPTIONS" });
  expect(answer).toMatchObject({ status: 204, text: "" });
  expect(answer.headers.get("allow")).toBe(allow);
  expectCommonHeaders(answer);
});

const unknownPaths = [
  { method: "POST", target: "/v1/serp/search/" },
  { method: "POST", target: "/V1/SERP/SEARCH" },
  { method: "GET", target: "/v1/usage/" },
  { method: "GET", target: "//v1/usage" },
  { method: "GET", target: "/v1/%E0%A4%A" },
  { method: "GET", target: "/v1/..%2fusage" },
  { method: "GET", target: "/v1/x/../usage" },
  { method: "GET", target: "/v1/usage%00" },
  { method: "GET", target: "/%00" },
  { method: "GET", target: "/v1/%75sage" },
  { method: "OPTIONS", target: "/v1/nothing" },
  { method: "OPTIONS", target: "*" },
];

test.each(unknownPaths)("$method $target is not a path of the API", async ({ method, target }) => {
  const answer = await expectNoTrace(service, organization, () => ask(method, target));
  expect(refusalIn(answer)).toEqual({ code: "not_found", details: {} });
});

test("unknown and repeated query parameters are ignored", async () => {
  const answer = await service.send("/v1/usage?from=1&from=2&a[b]=1&%E0%A4%A", { headers: authorization() });
  expect(answer).toMatchObject({ status: 200, body: { plan: expect.any(String) } });
});
