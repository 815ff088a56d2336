import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decideSettlements } from "../../../shared/credits/ledger.ts";
import { insertSearches } from "../../../shared/search-log/search-log.ts";
import { signIn } from "../../harness/clients/page-visitor.ts";
import { type BackdatedEntry, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { requestIdAt } from "../../harness/fixtures/request-ids.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";

/** The days of the history, and the way from a repeat to the search that paid for it. */

let service: Service;
beforeAll(async () => {
  service = await Service.start({ workers: 0 });
});
afterAll(() => service.stop());

/** The headings of the days on a page, without markup, and how many entries are under each. */
function daysOn(page: string): [heading: string, entries: number][] {
  return [...page.matchAll(/<tbody>\s*<tr class="date">(.*?)<\/tr>(.*?)<\/tbody>/gs)].map(
    ([, heading = "", rows = ""]) => [
      heading
        .replaceAll(/<[^>]*>/g, " ")
        .replaceAll(/\s+/g, " ")
        .trim(),
      rows.match(/<tr>/g)?.length ?? 0,
    ],
  );
}

const charges = (day: string, length: number): BackdatedEntry[] =>
  Array.from({ length }, (_, nth) => ({ at: new Date(Date.parse(`${day}T10:00Z`) + nth), kind: "charge", mils: 5 }));

test("the history has a heading for each UTC day, with the searches and dollars of the whole day on whatever page and under whatever filter", async () => {
  const organization = await service.organization({ creditMils: 0 });
  const credited = requestIdAt(Date.parse("2026-03-02T23:59:59Z"));
  await backdateLedger(service.databaseUrl, organization.organizationId, [
    { at: new Date("2026-03-01T08:00Z"), kind: "grant", mils: 1_000 },
    ...charges("2026-03-01", 30),
    { at: new Date("2026-03-02T00:00Z"), kind: "refund", reason: "engine_error" },
    { at: new Date("2026-03-02T23:59:59Z"), kind: "charge", mils: 7, requestId: credited },
    {
      at: new Date("2026-03-03T00:00Z"),
      kind: "reversal",
      mils: 7,
      requestId: credited,
      reason: "caller_disconnected",
    },
    ...charges("2026-03-03", 4),
  ]);
  const visitor = await signIn(service, organization);
  const first = (await visitor.get("/billing/searches")).text;
  const march3 = "3 Mar 2026 Whole day: 4 searches, $0.013 net";
  const march2 = "2 Mar 2026 Whole day: 2 searches, $0.007 net";
  const march1 = "1 Mar 2026 Whole day: 30 searches, $0.15 net";
  expect(daysOn(first)).toEqual([
    [march3, 4],
    [march2, 2],
    [march1, 19],
  ]);
  // The day is in the heading, so a row has the time only; a pointer that rests on it gets both.
  expect(first).toContain('title="2 Mar 2026, 23:59:59 UTC">23:59:59</time>');
  const older = /href="([^"]+)">Older</.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
  expect(daysOn((await visitor.get(older)).text)).toEqual([[march1, 12]]);
  expect(daysOn((await visitor.get("/billing/searches?show=refunded")).text)).toEqual([[march2, 1]]);
  expect(daysOn((await visitor.get("/billing/searches?show=reversed")).text)).toEqual([[march3, 1]]);
  expect(daysOn((await visitor.get("/billing/searches?show=grants")).text)).toEqual([[march1, 1]]);
  const { text } = await visitor.get("/billing/searches.csv");
  expect(text.trimEnd().split("\n")).toHaveLength(1 + 1 + 30 + 2 + 4);
  expect(text).not.toContain("Whole day");
});

test("the days of what was found have the searches and dollars that are on the page", async () => {
  const organization = await service.organization();
  const [pump] = await decide(organization, [{ keyword: "pump" }, { keyword: "hose" }]);
  const visitor = await signIn(service, organization);
  for (const find of ["pump", pump ?? ""])
    expect(daysOn((await visitor.get(`/billing/searches?find=${find}`)).text)).toEqual([
      [expect.stringMatching(/^\d+ \w+ \d{4} On this page: 1 search, \$0\.005 net$/), 1],
    ]);
});

test("the page of a repeat that was not charged leads to the search that paid, while its key is known", async () => {
  const organization = await service.organization();
  const key = { hash: "a".repeat(64), fingerprint: "f" };
  const other = { ...key, fingerprint: "another query" };
  const [paid, repeat, reused, plain] = await decide(organization, [
    { key },
    { key },
    { key: other },
    { key: undefined },
  ]);
  const visitor = await signIn(service, organization);
  const link = `<a href="/billing/searches/${paid}">The search that paid</a>`;
  const page = async (id = "") => (await visitor.get(`/billing/searches/${id}`)).text;
  expect(await page(repeat)).toContain("A repeat whose Idempotency-Key had already paid");
  for (const follower of [repeat, reused]) expect(await page(follower)).toContain(link);
  for (const id of [paid, plain]) expect(await page(id)).not.toContain("The search that paid");

  // The key paid anew a day later: for another search, which this repeat did not follow.
  await asOwner(service.databaseUrl, (client) => client.query("update answers set expires_at = now()"));
  expect(await page(repeat)).not.toContain("The search that paid");
  const [anew] = await decide(organization, [{ key }]);
  expect(await page(anew)).toContain("Charged");
  expect(await page(repeat)).not.toContain("The search that paid");
});

/** Searches as the ledger decides and the log keeps them. @returns their request ids. */
async function decide(
  { organizationId, tokenId }: Organization,
  searches: readonly { keyword?: string; key?: { hash: string; fingerprint: string } | undefined }[],
): Promise<string[]> {
  const ids = [];
  for (const { keyword = "coffee", key } of searches) {
    const requestId = requestIdAt(Date.now());
    const answer = key && gzipSync('{"results":[]}');
    const charge = chargeOf(organizationId, { requestId, tokenId, key, answer });
    await decideSettlements(service.database, [charge]);
    const asked = { requestId, organizationId, tokenId, keyHash: key?.hash, query: query({ keyword }) };
    await insertSearches(service.database, [{ ...asked, durationMs: 1, trace: undefined }]);
    ids.push(requestId);
  }
  return ids;
}
