import { expect, test } from "vitest";
import { searchResponseBody } from "../../shared/search-answer.ts";
import { endlessWindow } from "../harness/fixtures/refusals.ts";
import type { Answer } from "../harness/processes/service.ts";
import { usualService } from "../harness/processes/usual-stack.ts";

const service = await usualService();

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

test("the rest of the window is that at the answer, not at the start of the search", async () => {
  const { token } = await service.organization({ terms: endlessWindow });
  const leftSeconds = ({ headers }: Answer) => Number(/;t=(\d+)$/.exec(headers.get("ratelimit") ?? "")?.[1]);
  const before = leftSeconds(await service.usage(token));
  const answer = await service.search(token, { keyword: "sandbox:slow=3000" });
  expect(leftSeconds(answer)).toBeLessThanOrEqual(before - 2);
});
