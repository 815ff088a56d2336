import { expect, test } from "vitest";
import { z } from "zod";
import { helpHeadingOf, helpLinkOf } from "../../../api/http/send-error.ts";
import { openApiDocument } from "../../../api/docs/openapi-document.ts";
import { type ErrorCode, errors } from "../../../shared/errors.ts";
import type { Answer } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";
import { sendRaw } from "../../harness/clients/raw-http.ts";

/** From an error to what it means. page.test.ts follows the link in a browser. */

const service = await usualService();
const organization = await service.organization({ creditMils: 0 });

test("every error code has a section in the reference, which says whether a repeat can succeed", () => {
  const { description } = z.object({ info: z.object({ description: z.string() }) }).parse(openApiDocument()).info;
  const codes = Object.keys(errors) as ErrorCode[]; // Object.keys returns strings.
  const missing = codes.filter((code) => !description.includes(`\n### ${helpHeadingOf(code)}\n\n\`${code}\`: `));
  expect(missing).toEqual([]);
});

const post = (body: string, token: string) => ({
  method: "POST",
  headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
  body,
});

test("an error of the API links to its section, and its body does not change", async () => {
  const answers: Answer[] = [
    await service.search(organization.token, { keyword: "a", depth: 0 }),
    await service.search(organization.token, { keyword: "a" }),
    await service.search(organization.token, { keyword: "a", engine: "bing" }),
    await service.search("none", { keyword: "a" }),
    await service.send("/v1/serp/search"),
    await service.send("/v2"),
  ];
  const links = answers.map(({ body, headers }) => [body.error.code, headers.get("link")]);
  const expected: ErrorCode[] = [
    "bad_request",
    "out_of_credits",
    "not_implemented",
    "unauthenticated",
    "method_not_allowed",
    "not_found",
  ];
  expect(links).toEqual(expected.map((code) => [code, helpLinkOf(code)]));
  for (const { body } of answers) {
    expect(Object.keys(body)).toEqual(["requestId", "error"]);
    expect(Object.keys(body.error)).toEqual(["code", "message", "details"]);
  }
  const { answers: malformed } = await sendRaw(service.apis[0]?.url ?? "", "GET /v1/usage HTTP/1.1\r\n\r\n");
  expect(malformed.map(({ headers }) => headers.get("link"))).toEqual([helpLinkOf("bad_request")]);
});

test("answers, agents and pages get no such link", async () => {
  const usage = await service.usage(organization.token);
  const mcp = await service.send("/mcp", post("{", "none"));
  const page = await service.send("/billing/unknown");
  expect([usage, mcp, page].map(({ status, headers }) => [status, headers.get("link")])).toEqual([
    [200, null],
    [401, null],
    [404, null],
  ]);
});

test("/llms.txt names the addresses of this service, each of which answers", async () => {
  const { text, headers } = await service.send("/llms.txt");
  expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
  const origin = service.apis[0]?.url ?? "";
  const paths = [...text.matchAll(/\]\((\S+?)\)/g)].map(([, address = ""]) => address.replace(origin, ""));
  expect(paths).toEqual([
    "/openapi.json",
    "/docs",
    "/docs#description/retry-safely",
    "/mcp?names=plain",
    "/playground",
    "/billing",
  ]);
  const statuses = await Promise.all(paths.map(async (path) => (await service.send(path)).status));
  expect(statuses).not.toContain(404);
});
