import { beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../harness/processes/service.ts";
import { stubbedService } from "../harness/processes/usual-stack.ts";
import { refusal, reply, type SerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

let service: Service;
let stub: SerperStub;
beforeAll(async () => {
  ({ service, stub } = await stubbedService({ apis: 2 }));
});

describe("a plan with a price per page", () => {
  const priced = { creditMils: 100, terms: { pricePerPageMils: 3 } };
  const calls = (keyword: string) => stub.requests.filter(({ body }) => body["q"] === keyword).length;

  test.each([
    { depth: 1, pages: 1 },
    { depth: 10, pages: 1 },
    { depth: 11, pages: 2 },
    { depth: 100, pages: 10 },
  ])("charges depth $depth as $pages pages, in one amount", async ({ depth, pages }) => {
    const { organizationId, token } = await service.organization(priced);
    const keyword = `priced by depth ${depth}`;
    const { status, body } = await service.search(token, { keyword, depth });
    expect({ status, charged: body.creditsCharged, left: body.creditsRemaining }).toEqual({
      status: 200,
      charged: 3 * pages,
      left: 100 - 3 * pages,
    });
    expect(calls(keyword)).toBe(pages);
    await service.rest();
    expect(await service.ledgerOf(organizationId)).toMatchObject([
      { kind: "grant", mils: 100 },
      { kind: "charge", mils: -3 * pages, requestId: body.requestId },
    ]);
    expect((await service.usage(token)).body.creditBalanceMils).toBe(100 - 3 * pages);
    expect(await service.verify()).toMatchObject({ ok: true });
  });

  test("holds the whole price at once, so that no search starts on the credit of another's later pages", async () => {
    const { organizationId, token } = await service.organization({ ...priced, creditMils: 32 });
    const release = stub.hold();
    const deep = service.search(token, { keyword: "held as one", depth: 100 });
    await service.until(async () => (await service.holdsOf(organizationId)).heldMils === 30);
    const { status, body } = await service.search(token, { keyword: "on the rest" }, { api: 1 });
    expect(status).toBe(402);
    expect(body.error.details).toMatchObject({ priceMils: 3, availableMils: 2, heldMils: 30 });
    release();
    expect((await deep).body.creditsCharged).toBe(30);
  });

  test("charges the depth that was asked for where the engine has fewer results, and a repeat under its key nothing", async () => {
    const { organizationId, token } = await service.organization(priced);
    const keyword = "one page without results";
    stub.next.push(reply(200, { organic: [], credits: 1 }));
    const search = () => service.search(token, { keyword, depth: 30 }, { key: "short" });
    const first = await search();
    expect([first.body.creditsCharged, first.body.results.length, calls(keyword)]).toEqual([9, 0, 1]);
    expect((await search()).text).toBe(first.text);
    await service.rest();
    expect((await service.ledgerOf(organizationId)).slice(1)).toMatchObject([{ kind: "charge", mils: -9 }]);
  });

  test("gives the whole price back where one page fails", async () => {
    const { organizationId, token } = await service.organization(priced);
    stub.next.push(tenOrganic, refusal(400, "Bad"));
    const { status } = await service.search(token, { keyword: "half an answer", depth: 20 });
    expect(status).toBe(502);
    await service.rest();
    expect((await service.ledgerOf(organizationId)).slice(1)).toMatchObject([{ kind: "refund", mils: 0 }]);
    expect((await service.usage(token)).body.creditBalanceMils).toBe(100);
  });
});
