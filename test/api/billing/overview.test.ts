import { beforeAll, expect, test } from "vitest";
import { signIn } from "../../harness/clients/page-visitor.ts";
import { aMonth, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import type { Service } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The overview of an account: the first search, how long credit lasts, and the chart. */

let service: Service;
beforeAll(async () => {
  service = await usualService();
});

test("a new organization gets a line to copy with the real address, which becomes its first result while the page is open", async () => {
  const organization = await service.organization();
  const visitor = await signIn(service, organization);
  const { text } = await visitor.get("/billing");
  expect(text).toContain("Make your first search");
  expect(text).toContain(`curl ${service.apis[0]?.url}/v1/serp/search \\\n`);
  expect(text).not.toContain("left at this pace");
  const { events } = await visitor.follow();
  const { body } = await service.search(organization.token, { keyword: "coffee" });
  for await (const { id, html = "" } of events) {
    if (id !== "latest" || !html.includes(body.requestId)) continue;
    expect(html).not.toContain("Make your first search");
    break;
  }
});

test("each range has its days or hours, whose numbers add up to those of the ledger", async () => {
  const organization = await service.organization({ creditMils: 0 });
  await backdateLedger(service.databaseUrl, organization.organizationId, aMonth(new Date()));
  const visitor = await signIn(service, organization);
  const bars = { "24h": 24, "7d": 7, "30d": 30, "90d": 90, month: new Date().getUTCDate() };
  for (const [range, length] of Object.entries(bars)) {
    const { text } = await visitor.get(`/billing?measure=searches&range=${range}`);
    expect([range, text.match(/class="day"/g)?.length]).toEqual([range, length]);
  }
  const { text } = await visitor.get("/billing?measure=dollars&range=90d");
  const net = Number(/<strong><data value="(-?\d+)"/.exec(text)?.[1]);
  const { rows } = await service.database.query(
    "select -sum(amount_mils)::integer as net from ledger_entries where organization_id = $1 and kind <> 'grant'",
    [organization.organizationId],
  );
  expect(net).toBe(rows[0].net);
  expect(text).toContain("left at this pace, ≈ ");
  for (const wrong of ["measure=money", "range=1y"]) expect((await visitor.get(`/billing?${wrong}`)).status).toBe(404);
});
