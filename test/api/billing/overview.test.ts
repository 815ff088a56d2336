import { afterAll, expect, test } from "vitest";
import { newId } from "../../../shared/ids.ts";
import { inTransaction } from "../../../shared/database/transaction.ts";
import { insertSearches } from "../../../shared/search-log/search-log.ts";
import { setThreshold } from "../../../shared/webhooks/low-balance.ts";
import { setWebhook } from "../../../shared/webhooks/webhooks.ts";
import { readable, signedIn, signIn } from "../../harness/clients/page-visitor.ts";
import { aMonth, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { operator } from "../../harness/fixtures/operator.ts";

/** The overview of an account: the first search, how long credit lasts, and the chart of searches and their durations. */

const service = await Service.start({ end: afterAll });
await service.startApi({ SEARCH_LOG_DAYS: "0" });

test("a new organization gets a line to copy with the real address, which becomes its first result while the page is open", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const { text } = await visitor.get("/billing");
  expect(text).toContain("Make your first search");
  expect(text).toContain(` ${service.apis[0]?.url}/v1/serp/search \\\n`);
  expect(text).not.toContain("Lasts until");
  const { events } = await visitor.follow();
  const { body } = await service.search(organization.token, { keyword: "coffee" });
  for await (const { id, html = "" } of events) {
    if (id !== "latest" || !html.includes(body.requestId)) continue;
    expect(html).not.toContain("Make your first search");
    break;
  }
});

test("without credit for a search, adding credit comes before the first search; with credit, after everything else", async () => {
  const order = async (creditMils: number) => {
    const { text } = await (await signIn(service, await service.organization({ creditMils }))).get("/billing");
    return [...text.matchAll(/id="(credit|add-credit|latest|usage)"/g)].map(([, id]) => id);
  };
  expect(await order(4)).toEqual(["credit", "add-credit", "latest", "usage"]);
  expect(await order(5)).toEqual(["credit", "latest", "usage", "add-credit"]);
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
  for (const wrong of ["measure=money", "range=1y"]) expect((await visitor.get(`/billing?${wrong}`)).status).toBe(404);
});

test("an account sees when its credit ends, at the pace of a day that is far from usual, and the low-balance event names the same date", async () => {
  const organization = await service.organization({ creditMils: 0 });
  const { organizationId } = organization;
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  const charges = (days: number, each: number) =>
    Array.from({ length: each }, () => ({ at: hoursAgo(days * 24 + 12), kind: "charge", mils: 5 }) as const);
  await backdateLedger(service.databaseUrl, organizationId, [
    { at: hoursAgo(200), kind: "grant", mils: 10_000 },
    ...[6, 5, 4, 3, 2, 1].flatMap((days) => charges(days, 2)),
    ...charges(0, 40),
  ]);
  await inTransaction(service.database, async (transaction) => {
    await setWebhook(transaction, { actor: operator, organizationId }, "https://receiver.example/");
    await setThreshold(transaction, { actor: operator, organizationId }, 20_000);
  });
  const { text } = await (await signIn(service, organization)).get("/billing");
  const endsOn = /Lasts until about <time datetime="([^"]+)"/.exec(text)?.[1];
  // 9,740 mils at 200 a day.
  const days = (Date.parse(endsOn ?? "") - Date.now()) / 86_400_000;
  expect(days).toBeGreaterThan(46);
  expect(days).toBeLessThan(49);
  const words = text.replaceAll(/<[^>]*>/g, "").replaceAll(/\s+/g, " ");
  expect(words).toContain("Last 24 hours40 searches for $0.200 Last 7 days7.4 searches a day for $0.037");
  expect(words).toContain("40 searches were charged in the last 24 hours, instead of about 2 a day");
  const event = async () => {
    const { rows } = await service.database.query("select body from webhook_events where organization_id = $1", [
      organizationId,
    ]);
    return rows[0]?.body;
  };
  await service.until(async () => (await event()) !== undefined);
  expect(JSON.parse(await event()).data).toMatchObject({ balanceMils: 9_740, endsOn });
});

/** The section of the chart as text. */
const usageIn = (page: string) =>
  readable((/<div id="usage".*?<\/section>/s.exec(page)?.[0] ?? "").replaceAll(/<svg[\s\S]*<\/svg>/g, ""));

/** A search of now, as ledger and log have it. */
async function search({ organizationId }: Organization, durationMs: number, tokenId: string) {
  const requestId = newId("req");
  const entry = { at: new Date(), kind: "charge" as const, mils: 5, requestId, tokenId };
  await backdateLedger(service.databaseUrl, organizationId, [entry]);
  const asked = { requestId, organizationId, tokenId, keyHash: undefined, query: query() };
  await insertSearches(service.database, [{ ...asked, durationMs, trace: undefined }]);
}

test("latency is two lines, median and 95th percentile, with the values of each day in words and as a table, and the range's median", async () => {
  const organization = await service.organization();
  for (let durationMs = 10; durationMs <= 1_000; durationMs += 10)
    await search(organization, durationMs, organization.tokenId);
  const visitor = await signIn(service, organization);
  for (const range of ["24h", "7d"]) {
    const { text } = await visitor.get(`/billing?measure=latency&range=${range}`);
    expect(text).toMatch(/aria-label="[^"]*: median 500 ms, 95th percentile 950 ms, of 100 searches"/);
    const when = range === "24h" ? "24 hours" : "7 days";
    expect(usageIn(text)).toContain(`500 ms median of the last ${when}; 95 % took 950 ms or less`);
    // A day between days without searches has no line: its points are drawn.
    expect(text).toMatch(/<circle class="p95 alone"[\s\S]*<circle class="median alone"/);
    expect(text).not.toMatch(/<rect class="returned"/);
    expect(usageIn(text)).toMatch(/ 100 500 ms 950 ms /);
    expect(usageIn(text)).not.toContain("older than");
  }
  const long = usageIn((await visitor.get("/billing?measure=latency&range=90d")).text);
  expect(long).toContain("Durations older than 30 days are deleted.");
});

test("a chart of a time without searches says so in its picture, and one with searches does not", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const picture = async () => /<div id="usage"[\s\S]*?<\/svg>/.exec((await visitor.get("/billing")).text)?.[0];
  expect(await picture()).toContain(">No searches in this period</text>");
  await search(organization, 10, organization.tokenId);
  expect(await picture()).not.toContain("No searches in this period");
});

test("without a search log the chart says that durations are not known, and the other charts stay", async () => {
  const organization = await service.organization();
  await search(organization, 10, organization.tokenId);
  const visitor = await signIn(service, organization, { api: 1 });
  const latency = await visitor.get("/billing?measure=latency");
  expect(latency.status).toBe(200);
  expect(usageIn(latency.text)).toContain("keeps no search log, so durations are not available");
  expect(latency.text).not.toContain("500 ms");
  expect(usageIn((await visitor.get("/billing?measure=searches")).text)).toContain(" 1 0 not charged");
});

test("the chart of one token has its searches, dollars and latency, and says if others have no token on record", async () => {
  const organization = await service.organization();
  const other = (await service.issue(organization.organizationId, { name: "shop" })).tokenId;
  for (const durationMs of [100, 200, 300]) await search(organization, durationMs, other);
  await search(organization, 900, organization.tokenId);
  const visitor = await signIn(service, organization);
  const chart = async (measure: string, token: string) => {
    const { text } = await visitor.get(`/billing?measure=${measure}&range=7d&token=${token}`);
    // The switch keeps the token.
    expect(text).toContain(`/billing?measure=dollars&amp;range=30d&amp;token=${token}#usage`.replace("30d", "7d"));
    expect(text).toContain(`<option value="${token}" selected>`);
    return usageIn(text);
  };
  expect(await chart("searches", other)).toContain(" 3 0 not charged");
  expect(await chart("dollars", other)).toContain(" $0.015 net");
  expect(await chart("latency", other)).toContain(" 200 ms median");
  expect(await chart("searches", organization.tokenId)).toContain(" 1 0 not charged");
  expect(await chart("uncharged", other)).not.toContain("no token on record");
  const swept = { at: new Date(), kind: "refund" as const, reason: "swept" };
  await backdateLedger(service.databaseUrl, organization.organizationId, [swept]);
  expect(await chart("uncharged", other)).toContain("no token on record");

  const stranger = await service.organization();
  for (const wrong of ["x", newId("tok"), stranger.tokenId])
    expect((await visitor.get(`/billing?token=${wrong}`)).status).toBe(404);
  expect((await visitor.get("/billing?token=")).status).toBe(200);
});

test("the pages offer valid tokens before others, 200 in all, and always the chosen one", async () => {
  const organization = await service.organization();
  const expired = { expiresAt: new Date(0) };
  const ids: string[] = [];
  while (ids.length < 201) ids.push((await service.issue(organization.organizationId, expired)).tokenId);
  const oldest = ids.toSorted()[0] ?? "";
  const visitor = await signIn(service, organization);
  for (const path of ["/billing", "/billing/searches"]) {
    const { text } = await visitor.get(`${path}?token=${oldest}`);
    const offered = [...text.matchAll(/<option value="(tok_\w+)"/g)].map(([, id]) => id);
    expect(offered).toHaveLength(201);
    expect(offered[0]).toBe(organization.tokenId);
    expect(text).toContain(`<option value="${oldest}" selected>`);
  }
});

test("an open page keeps the chart of a token or of latency as it was read, and goes on to show the newest searches", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const { events } = await visitor.follow(`/billing/live?measure=latency&range=7d&token=${organization.tokenId}`);
  await search(organization, 10, organization.tokenId);
  const ids = [];
  for await (const { id, html } of events) {
    ids.push(id);
    if (id === "latest" && html?.includes("garden pump")) break;
  }
  expect(ids).not.toContain("usage");
  expect(ids).toContain("low-balance");
});
