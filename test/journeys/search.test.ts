import { beforeAll, expect, test } from "vitest";
import { compactResponseBody, searchResponseBody } from "../../shared/search-answer.ts";
import type { Result } from "../../shared/results.ts";
import type { Service } from "../harness/processes/service.ts";
import { usualService } from "../harness/processes/usual-stack.ts";

let service: Service;
beforeAll(async () => {
  service = await usualService();
});

test("a keyword is answered with ranked results, the query as executed and what it cost", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 1_000 });
  const { status, body, headers } = await service.search(token, { keyword: " best coffee beans " });

  expect(status).toBe(200);
  expect(searchResponseBody.parse(body)).toMatchObject({
    query: {
      keyword: "best coffee beans",
      engine: "google",
      location: "United States",
      language: "English",
      device: "desktop",
      depth: 10,
    },
    creditsCharged: 5,
    creditsRemaining: 995,
  });
  expect(headers.get("x-request-id")).toBe(body.requestId);
  expect(body.results.length).toBeGreaterThan(9);
  expect(body.results.map((element: { rank: number }) => element.rank)).toEqual(
    body.results.map((_: unknown, place: number) => place + 1),
  );

  await service.rest();
  expect(await service.ledgerOf(organizationId)).toMatchObject([
    { kind: "grant", mils: 1_000 },
    { kind: "charge", mils: -5, requestId: body.requestId },
  ]);
  expect((await service.usage(token)).body).toEqual({ creditBalanceMils: 995, plan: "payg" });
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});

test("a corrected spelling is in the query of the answer and of its replay, and in no other answer", async () => {
  const { token } = await service.organization({ creditMils: 1_000 });
  const keyword = "garden pump sandbox:corrected";
  const first = await service.search(token, { keyword }, { key: "corrected" });
  expect(first.body.query).toMatchObject({ keyword, searchedKeyword: "garden pump" });
  expect((await service.search(token, { keyword }, { key: "corrected" })).text).toBe(first.text);

  const { body } = await service.search(token, { keyword: "garden pump" });
  expect(Object.keys(body.query)).toEqual(["keyword", "engine", "location", "language", "device", "depth"]);
});

test("types keeps the results of these types, for the same price and with their ranks on the whole page", async () => {
  const { token } = await service.organization({ creditMils: 1_000 });
  const keyword = "garden pump";
  const { body: whole } = await service.search(token, { keyword });
  const types = ["people_also_ask", "organic", "organic"];
  const { body } = await service.search(token, { keyword, types });

  const wanted = whole.results.filter((result: Result) => ["organic", "people_also_ask"].includes(result.type));
  expect(searchResponseBody.parse(body)).toMatchObject({ creditsCharged: 5, creditsRemaining: 990, results: wanted });
  expect(wanted).toHaveLength(11);
  expect(body.query).toEqual({ ...whole.query, types: ["organic", "people_also_ask"] });
});

test("the compact format has title, URL and description of the organic results, for the same price", async () => {
  const { token } = await service.organization({ creditMils: 1_000 });
  const keyword = "garden pump";
  const { body: whole } = await service.search(token, { keyword });
  const { body } = await service.search(token, { keyword, format: "compact" });

  const organic = whole.results.filter((result: Result) => result.type === "organic");
  expect(compactResponseBody.parse(body)).toEqual({
    requestId: expect.any(String),
    query: { ...whole.query, format: "compact" },
    creditsCharged: 5,
    creditsRemaining: 990,
    results: organic.map(({ title, url, description }: Result) => ({ title, url, description })),
  });
  expect(organic).toHaveLength(10);
});

test("a key repeats the types and the format that it was first used with, and refuses others", async () => {
  const { token } = await service.organization({ creditMils: 1_000 });
  const compact = { keyword: "garden pump", format: "compact" };
  const first = await service.search(token, compact, { key: "shape" });
  expect((await service.search(token, compact, { key: "shape" })).text).toBe(first.text);
  const others = [{ format: "full" }, { format: "full", types: ["organic"] }];
  for (const other of others) {
    const { status, body } = await service.search(token, { ...compact, ...other }, { key: "shape" });
    expect([status, body.error.details.reason]).toEqual([400, "idempotency_key_reused"]);
  }
});
