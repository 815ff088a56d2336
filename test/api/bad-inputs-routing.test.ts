import { afterAll, beforeAll, expect, test } from "vitest";
import { sendRaw } from "../harness/clients/raw-http.ts";
import { endlessWindow, expectCommonHeaders, expectNoTrace, refusalIn } from "../harness/fixtures/refusals.ts";
import { type Answer, type Organization, Service } from "../harness/processes/service.ts";

/** Rows 23 to 29 of the table of bad inputs: paths and methods. They belong to the router, so no token is asked for. */

let service: Service;
let organization: Organization;
beforeAll(async () => {
  service = await Service.start({ workers: 0 });
  organization = await service.organization({ terms: endlessWindow });
});
afterAll(() => service.stop());

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
  { row: 23, method: "GET", ...known[0] },
  { row: 24, method: "DELETE", ...known[1] },
  { row: 24, method: "POST", ...known[1] },
  { row: 25, method: "TRACE", ...known[1] },
  { row: 25, method: "TRACE", ...known[0] },
  { row: 25, method: "PUT", ...known[0] },
];

test.each(wrongMethods)("$method $path is told which methods there are", async ({ method, path = "", allow = "" }) => {
  const answer = await expectNoTrace(service, organization, () => ask(method, path));
  expect(refusalIn(answer)).toEqual({ code: "method_not_allowed", details: {} });
  expect(answer?.headers.get("allow")).toBe(allow);
});

test.each(known)("HEAD $path is another method than GET", async ({ path, allow }) => {
  const { status, headers } = await fetch(`${service.apis[0]?.url}${path}`, {
    method: "HEAD",
    headers: authorization(),
  });
  expect(status).toBe(405);
  expect(headers.get("allow")).toBe(allow);
  expectCommonHeaders({ headers });
});

test.each(known)("OPTIONS $path tells which methods there are, without a token", async ({ path, allow }) => {
  const answer = await service.send(path, { method: "OPTIONS" });
  expect(answer).toMatchObject({ status: 204, text: "" });
  expect(answer.headers.get("allow")).toBe(allow);
  expectCommonHeaders(answer);
});

const unknownPaths = [
  { row: 27, method: "POST", target: "/v1/serp/search/" },
  { row: 27, method: "POST", target: "/V1/SERP/SEARCH" },
  { row: 27, method: "GET", target: "/v1/usage/" },
  { row: 27, method: "GET", target: "//v1/usage" },
  { row: 28, method: "GET", target: "/v1/%E0%A4%A" },
  { row: 28, method: "GET", target: "/v1/..%2fusage" },
  { row: 28, method: "GET", target: "/v1/x/../usage" },
  { row: 28, method: "GET", target: "/v1/usage%00" },
  { row: 28, method: "GET", target: "/%00" },
  { row: 28, method: "GET", target: "/v1/%75sage" },
  { row: 28, method: "OPTIONS", target: "/v1/nothing" },
  { row: 28, method: "OPTIONS", target: "*" },
];

test.each(unknownPaths)("$method $target is no path of ours", async ({ method, target }) => {
  const answer = await expectNoTrace(service, organization, () => ask(method, target));
  expect(refusalIn(answer)).toEqual({ code: "not_found", details: {} });
});

test("unknown and repeated query parameters are ignored (contract, against row 29)", async () => {
  const answer = await service.send("/v1/usage?from=1&from=2&a[b]=1&%E0%A4%A", { headers: authorization() });
  expect(answer).toMatchObject({ status: 200, body: { creditBalanceMils: 1_000 } });
});
