import { zstdCompressSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { dateOf } from "../../../api/pages/format.ts";
import { decideSettlements } from "../../../shared/credits/ledger.ts";
import { newId } from "../../../shared/ids.ts";
import type { Result } from "../../../shared/results.ts";
import { scannedMax } from "../../../api/ledger/history.ts";
import { insertSearches } from "../../../shared/search-log/search-log.ts";
import { PageVisitor, readable, signedIn, signIn } from "../../harness/clients/page-visitor.ts";
import { type BackdatedEntry, backdateLedger, manyReversed } from "../../harness/fixtures/backdate-ledger.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { requestIdAt } from "../../harness/fixtures/request-ids.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";

/** What was searched, on the page of the searches, in its CSV, and on the page of one search. */

const service = await usualService();
// No API delivered the past searches, so they are credited back, and the service is at rest for the next file.
afterAll(async () => {
  await service.age();
  await service.rest();
});

/** Sends a search, and waits until the log has it. @returns its request id. */
const search = async (token: string, body: object, key?: string) =>
  service.logged(await service.search(token, body, key === undefined ? {} : { key }));

/** A charged search, or a repeat under its key, as the ledger and the log have it. @returns its request id. */
async function past(
  { organizationId, tokenId }: Organization,
  made: { keyword?: string; atMs?: number; key?: { hash: string; fingerprint: string } } = {},
): Promise<string> {
  const { keyword = "coffee", atMs = Date.now(), key } = made;
  const requestId = requestIdAt(atMs);
  const answer = key && zstdCompressSync('{"results":[]}');
  await decideSettlements(service.database, [chargeOf(organizationId, { requestId, tokenId, key, answer })]);
  const trace = { from: "provider" as const, provider: "serper", calls: [] };
  const logged = { requestId, organizationId, tokenId, keyHash: key?.hash, query: query({ keyword }) };
  await insertSearches(service.database, [{ ...logged, durationMs: 1, trace }]);
  return requestId;
}

const idsIn = (text: string) => [...new Set([...text.matchAll(/req_[0-9a-z]{26}/g)].map(([id]) => id))];
/** The ids of the searches that a page lists. */
const linkedIn = (page: string) =>
  [...page.matchAll(/href="\/billing\/searches\/(req_\w+)"/g)].map(([, id = ""]) => id);
/** The address of the page with older searches; '' if there is none. */
const olderIn = (page: string) => /href="([^"]+)">Older</.exec(page)?.[1]?.replaceAll("&amp;", "&") ?? "";

/** The ids of the searches that a view lists, which are those of its CSV. */
async function foundBy(visitor: PageVisitor, asked: Record<string, string>) {
  const wanted = new URLSearchParams(asked).toString();
  const { status, text } = await visitor.get(`/billing/searches?${wanted}`);
  const ids = linkedIn(text);
  expect([status, idsIn((await visitor.get(`/billing/searches.csv?${wanted}`)).text)]).toEqual([200, ids]);
  return ids;
}

test("each search has its keyword, place, device, token and duration, on the page and in the CSV", async () => {
  const organization = await service.organization();
  const named = await service.issue(organization.organizationId, { name: "shop" });
  const body = { keyword: "garden pump", location: "Munich, Germany", language: "de", device: "mobile", depth: 20 };
  const requestId = await search(named.token, body);
  const visitor = await signIn(service, organization);
  for (const path of ["/billing", "/billing/searches"]) {
    expect(readable((await visitor.get(path)).text)).toMatch(
      new RegExp(`garden pump Munich, Germany · German · mobile · 20 results Charged shop [\\d.]+ m?s −\\$0\\.005`),
    );
  }
  const [head, row, grant] = (await visitor.get("/billing/searches.csv")).text.split("\n");
  expect(head).toBe("time_utc,outcome,id,reason,mils,keyword,country,language,device,location,depth,duration_ms,token");
  expect(row).toMatch(
    new RegExp(`,charged,${requestId},,-5,garden pump,Germany,German,mobile,"Munich,Germany",20,\\d+,shop$`),
  );
  expect(grant).toMatch(/,granted,grant_[^,]+,test,1000,,,,,,,,$/);
});

test("days, outcome, token and keyword narrow the list together, and stay in its addresses and its CSV", async () => {
  const organization = await service.organization({ creditMils: 0 });
  const at = (daysAgo: number) => Date.now() - daysAgo * 86_400_000;
  const day = (daysAgo: number) => new Date(at(daysAgo)).toISOString().slice(0, 10);
  const other = await service.issue(organization.organizationId, { name: "other" });
  const old = newId("req");
  await backdateLedger(service.databaseUrl, organization.organizationId, [
    { at: new Date(at(60)), kind: "grant", mils: 1_000 },
    { at: new Date(at(40)), kind: "charge", mils: 5, requestId: old, tokenId: other.tokenId },
  ]);
  const today = await past(organization, { keyword: "tea" });
  const logged: string[] = [];
  for (const daysAgo of [1, 2, 2, 3])
    logged.push(await past(organization, { keyword: `tea ${logged.length}`, atMs: at(daysAgo) }));
  const [yesterday = "", first = "", second = ""] = logged;
  const byOther = await past({ ...organization, ...other }, { keyword: "tea", atMs: at(2) });
  const visitor = await signIn(service, organization);
  const found = async (asked: Record<string, string>) => (await foundBy(visitor, asked)).toSorted();
  const [from, to] = [day(2), day(2)];
  expect(await found({ find: "tea", from, to })).toEqual([first, second, byOther].toSorted());
  expect(await found({ token: organization.tokenId, from, to })).toEqual([first, second].toSorted());
  expect(await found({ find: "tea", from: day(1) })).toEqual([yesterday, today].toSorted());
  expect(await found({ find: "tea", to: day(4) })).toEqual([]);
  // Without a keyword or a token the ledger is read, by the time of the charge: also what the log never had.
  expect(await found({ from: day(41), to: day(39), find: "" })).toEqual([old]);
  const { text: csv } = await visitor.get(`/billing/searches.csv?from=${day(41)}&to=${day(39)}`);
  expect(csv).toContain(`,charged,${old},,-5,,,,,,,,other\n`);
  expect(await found({ from: day(39), to: day(1) })).toEqual([]);
  expect(await found({ show: "refunded", from: day(0) })).toEqual([]);
  // An id is found whatever the days.
  expect(await found({ find: first, from: day(0) })).toEqual([first]);
  const { text } = await visitor.get(`/billing/searches?find=tea&from=${from}&to=${to}&token=${organization.tokenId}`);
  for (const link of text.matchAll(/href="([^"]+)">(?:Charged|Download CSV)</g))
    expect(link[1]).toContain(`&amp;token=${organization.tokenId}&amp;from=${from}&amp;to=${to}`);
  expect(text).toContain(`name="from" value="${from}"`);
  for (const wrong of ["from=2026-02-30", "to=0001-01-01", "from=a"])
    expect((await visitor.get(`/billing/searches?${wrong}`)).status).toBe(404);
});

test("a search is found by its request id, a part of its keyword, and its token, among entries of a filter", async () => {
  const organization = await service.organization();
  const other = await service.issue(organization.organizationId, { name: "other" });
  const pump = await search(organization.token, { keyword: "Garden Pump 100%" });
  const hose = await search(other.token, { keyword: "garden_hose" });
  const failed = await search(organization.token, { keyword: "garden sandbox:error" });
  const visitor = await signIn(service, organization);
  const found = (asked: Record<string, string>) => foundBy(visitor, asked);
  expect(await found({ find: "garden" })).toEqual([failed, hose, pump]);
  expect(await found({ find: " PUMP " })).toEqual([pump]);
  expect(await found({ find: "garden", show: "refunded" })).toEqual([failed]);
  expect(await found({ find: "garden", show: "grants" })).toEqual([]);
  for (const literal of ["0%", "n_h"]) expect(await found({ find: literal })).toHaveLength(1);
  expect(await found({ find: "%" })).toEqual([pump]);
  expect(await found({ find: "\\" })).toEqual([]);
  expect(await found({ token: other.tokenId })).toEqual([hose]);
  expect(await found({ token: newId("tok") })).toEqual([]);
  expect(await found({ find: hose })).toEqual([hose]);
  expect(await found({ find: newId("req") })).toEqual([]);
  expect(await found({ find: "req_7zzzzzzzzzzzzzzzzzzzzzzzzz" })).toEqual([]);
  expect(await found({ find: "garden", before: "req_7zzzzzzzzzzzzzzzzzzzzzzzzz" })).toEqual([failed, hose, pump]);
});

test.each(["?find=%00", "?find=a&find=b", "?token=x", "?find=a&before=1", "?before=req_00000000000000000000000000"])(
  "a view that does not exist is not found: %s",
  async (asked) => {
    const visitor = await signIn(service, await service.organization());
    expect(await visitor.get(`/billing/searches${asked}`)).toMatchObject({ status: 404 });
  },
);

test("what is found is turned page by page, and no search is skipped or shown twice", async () => {
  const organization = await service.organization();
  const ids: string[] = [];
  const now = Date.now();
  for (let made = 0; made < 60; made += 1)
    ids.push(await past(organization, { keyword: `word ${made}`, atMs: now - made }));
  const visitor = await signIn(service, organization);
  const seen: string[] = [];
  const first = "/billing/searches?show=all&find=word";
  for (let path = first; path !== ""; ) {
    const { text } = await visitor.get(path);
    expect(text.includes(`href="${first.replace("&", "&amp;")}">Newest<`)).toBe(path !== first);
    seen.push(...linkedIn(text));
    path = olderIn(text);
  }
  expect(seen).toEqual(ids);
});

test("a keyword that few searches have is looked for in the newest 10,000, and then further on demand", async () => {
  const organization = await service.organization();
  const { organizationId, tokenId } = organization;
  const now = Date.now();
  const rare = await past(organization, { keyword: "rare", atMs: now - scannedMax - 10 });
  const fields = { organizationId, tokenId, keyHash: undefined, query: query(), durationMs: 1, trace: undefined };
  const others = Array.from({ length: scannedMax }, (_, at) => ({ ...fields, requestId: requestIdAt(now - at) }));
  await insertSearches(service.database, others);
  const visitor = await signIn(service, organization);
  const { text } = await visitor.get("/billing/searches?find=rare");
  expect(readable(text)).toContain("Nothing found so far. This page covers 10,000 searches.");
  expect(idsIn((await visitor.get(olderIn(text))).text)).toContain(rare);
  expect((await visitor.get("/billing/searches.csv?find=rare")).text).toContain(rare);
});

test("charges behind many that were reversed are reached by 'Older', and are in the CSV", async () => {
  const organization = await service.organization();
  const requestId = await past(organization);
  await backdateLedger(service.databaseUrl, organization.organizationId, manyReversed(new Date(), scannedMax / 2));
  const visitor = await signIn(service, organization);
  const read = async (path = "/billing/searches?show=charged") => (await visitor.get(path)).text;
  expect(readable(await read())).toContain("Nothing found so far. This page covers 10,000 entries of the ledger.");
  const newest = await past(organization);
  const text = await read();
  expect(linkedIn(text)).toEqual([newest]);
  expect(linkedIn(await read(olderIn(text)))).toEqual([requestId]);
  expect(idsIn(await read("/billing/searches.csv?show=charged"))).toEqual([newest, requestId]);
});

test("a keyword is text on the page, in the address and in the CSV, whatever it contains", async () => {
  const organization = await service.organization();
  const keyword = `<img src=x onerror="alert(1)"> "quoted", =1+1`;
  const requestId = await search(organization.token, { keyword });
  const formula = await search(organization.token, { keyword: '=HYPERLINK("http://evil.example","x")' });
  const visitor = await signIn(service, organization);
  const found = `/billing/searches?${new URLSearchParams({ find: keyword }).toString()}`;
  for (const path of ["/billing", "/billing/searches", found, `/billing/searches/${requestId}`]) {
    const { status, text } = await visitor.get(path);
    expect(status).toBe(200);
    expect(text).toContain("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;");
    expect(text).not.toContain("<img src=x");
  }
  const csv = (await visitor.get("/billing/searches.csv")).text;
  expect(csv).toContain(`,"<img src=x onerror=""alert(1)""> ""quoted"", =1+1",`);
  expect(csv).toContain(`,${formula},,-5,"'=HYPERLINK(""http://evil.example"",""x"")",`);
});

test("a search's page has its query, its charge, every element of its answer while that is remembered, and no provider", async () => {
  const organization = await service.organization();
  const keyed = await search(organization.token, { keyword: "coffee", targetDomain: "example.com", depth: 30 }, "key");
  const whole = await search(organization.token, { keyword: "tea" }, "other");
  const plain = await search(organization.token, { keyword: "milk" });
  const visitor = await signIn(service, organization);
  const page = async (requestId: string) => readable((await visitor.get(`/billing/searches/${requestId}`)).text);
  expect(await page(keyed)).toMatch(
    /Charged −\$0\.005 .*Charge −\$0\.005 \$0\.995 .*Domain example\.com .*Idempotency-Key yes/,
  );
  const shown = (await visitor.get(`/billing/searches/${whole}`)).text;
  expect(shown).toContain(`&quot;requestId&quot;: &quot;${whole}&quot;`);
  const { results } = (await service.search(organization.token, { keyword: "tea" }, { key: "other" })).body;
  const kinds = [...shown.matchAll(/<p class="kind"[^>]*>([^<]*)</g)].map(([, kind]) => kind);
  expect(kinds).toEqual(results.map(({ type, rank }: Result) => `${type.replaceAll("_", " ")} · ${rank}`));
  expect(new Set(kinds).size).toBeGreaterThan(10);
  expect(shown).not.toMatch(/sandbox|costMicroUsd/);
  expect(await page(plain)).toContain("sent without an Idempotency-Key, and its answer is not kept, or no longer");
});

test("a search that was not charged says why, and one that was credited back has both entries", async () => {
  const organization = await service.organization();
  const failed = await search(organization.token, { keyword: "sandbox:error" });
  const unknown = await search(organization.token, { keyword: "tea", location: "Blah, Germany" });
  const charged = await past(organization, { keyword: "late" });
  await service.age();
  await service.until(async () => (await service.ledgerOf(organization.organizationId)).at(-1)?.kind === "reversal");
  const visitor = await signIn(service, organization);
  const page = async (id: string) => readable((await visitor.get(`/billing/searches/${id}`)).text);
  expect(await page(failed)).toContain(
    "Not charged $0.000 The search provider is down or overloaded. Search again in a few minutes.",
  );
  expect(await page(unknown)).toContain("$0.000 No search provider can run this query. Check its place and language.");
  expect(await page(charged)).toMatch(
    /Credited back .*was not confirmed\. .*Charge −\$0\.005 .*Credited back \+ ?\$0\.005 \$1\.00/,
  );
});

test("a search of another organization is not found, nor one that does not exist; a stranger is asked to sign in", async () => {
  const [mine, other] = [await service.organization(), await service.organization()];
  const requestId = await search(other.token, { keyword: "secret plan" }, "key");
  const visitor = await signIn(service, mine);
  for (const id of [requestId, newId("req"), "req_1", "req_7zzzzzzzzzzzzzzzzzzzzzzzzz"]) {
    const { status, text } = await visitor.get(`/billing/searches/${id}`);
    expect([id, status]).toEqual([id, 404]);
    expect(text).not.toContain("secret plan");
  }
  const stranger = await new PageVisitor(service).get(`/billing/searches/${requestId}`);
  expect(stranger.text).toContain('name="token"');
  expect(stranger.text).not.toContain("secret plan");
  for (const asked of ["find=secret", `find=${requestId}`, `token=${other.tokenId}`])
    expect((await visitor.get(`/billing/searches?${asked}`)).text).not.toMatch(/secret plan|Charged<\/span> /);
  const others = new RegExp(`${requestId}|${other.organizationId}`);
  for (const path of ["", "/searches", "/searches?before=9007199254740991.9007199254740991", "/searches.csv"]) {
    const { status, text } = await visitor.get(`/billing${path}`);
    expect([path, status]).toEqual([path, 200]);
    expect(text).not.toMatch(others);
  }
});

test("a search without a row in the log is shown with its amount, and found by its id alone", async () => {
  const organization = await service.organization();
  const { organizationId } = organization;
  const requestId = newId("req");
  await decideSettlements(service.database, [{ requestId, organizationId, wanted: "refund", reason: "swept" }]);
  const visitor = await signIn(service, organization);
  for (const path of ["", `?find=${requestId}`, `/${requestId}`])
    expect(readable((await visitor.get(`/billing/searches${path}`)).text)).toContain(
      "did not finish the search in time",
    );
  expect(readable((await visitor.get(`/billing/searches/${requestId}`)).text)).toContain(
    "is no longer in the search log",
  );
});

test("an open page gets the keyword of a search although it is written a moment after the charge", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const { events } = await visitor.follow("/billing/searches/live?show=all");
  const sent = service.search(organization.token, { keyword: "appears" });
  for await (const { html } of events) if (html?.includes(">appears</a>")) break;
  expect(await sent).toMatchObject({ status: 200 });
});

/** The headings of the days on a page, without markup, and how many entries are under each. */
function daysOn(page: string): [heading: string, entries: number][] {
  return [...page.matchAll(/<tbody>\s*<tr class="date">(.*?)<\/tr>(.*?)<\/tbody>/gs)].map(
    ([, heading = "", rows = ""]) => [readable(heading), rows.match(/<tr>/g)?.length ?? 0],
  );
}

const charges = (day: string, length: number): BackdatedEntry[] =>
  Array.from({ length }, (_, nth) => ({ at: new Date(Date.parse(`${day}T10:00Z`) + nth), kind: "charge", mils: 5 }));

test("the history has a heading for each UTC day, with the searches and dollars of the whole day on whatever page and under whatever filter", async () => {
  const organization = await service.organization({ creditMils: 0 });
  // Recent ones: a worker deletes refunds after 30 days.
  const dayBefore = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
  const [day1, day2, day3] = [dayBefore(4), dayBefore(3), dayBefore(2)];
  const credited = requestIdAt(Date.parse(`${day2}T23:59:59Z`));
  await backdateLedger(service.databaseUrl, organization.organizationId, [
    { at: new Date(`${day1}T08:00Z`), kind: "grant", mils: 1_000 },
    ...charges(day1, 30),
    { at: new Date(day2), kind: "refund", reason: "provider_unavailable" },
    { at: new Date(`${day2}T23:59:59Z`), kind: "charge", mils: 7, requestId: credited },
    { at: new Date(day3), kind: "reversal", mils: 7, requestId: credited, reason: "caller_disconnected" },
    ...charges(day3, 4),
  ]);
  const visitor = await signIn(service, organization);
  const first = (await visitor.get("/billing/searches")).text;
  const third = `${dateOf(new Date(day3))} Whole day: 4 searches, $0.013 net`;
  const second = `${dateOf(new Date(day2))} Whole day: 2 searches, $0.007 net`;
  const oldest = `${dateOf(new Date(day1))} Whole day: 30 searches, $0.150 net`;
  expect(daysOn(first)).toEqual([
    [third, 4],
    [second, 2],
    [oldest, 19],
  ]);
  // The day is in the heading, so a row has the time only; a pointer that rests on it gets both.
  expect(first).toContain(`title="${dateOf(new Date(day2))}, 23:59:59 UTC">23:59:59</time>`);
  expect(daysOn((await visitor.get(olderIn(first))).text)).toEqual([[oldest, 12]]);
  expect(daysOn((await visitor.get("/billing/searches?show=refunded")).text)).toEqual([[second, 1]]);
  expect(daysOn((await visitor.get("/billing/searches?show=reversed")).text)).toEqual([[third, 1]]);
  expect(daysOn((await visitor.get("/billing/searches?show=grants")).text)).toEqual([[oldest, 1]]);
  const { text } = await visitor.get("/billing/searches.csv");
  expect(text.trimEnd().split("\n")).toHaveLength(1 + 1 + 30 + 2 + 4);
  expect(text).not.toContain("Whole day");
});

test("the days of what was found have the searches and dollars that are on the page", async () => {
  const organization = await service.organization();
  const pump = await past(organization, { keyword: "pump" });
  await past(organization, { keyword: "hose" });
  const visitor = await signIn(service, organization);
  for (const find of ["pump", pump])
    expect(daysOn((await visitor.get(`/billing/searches?find=${find}`)).text)).toEqual([
      [expect.stringMatching(/^\d+ \w+ \d{4} On this page: 1 search, \$0\.005 net$/), 1],
    ]);
});

test("the page of a repeat that was not charged leads to the search that paid, while its key is known", async () => {
  const organization = await service.organization();
  const key = { hash: "a".repeat(64), fingerprint: "f" };
  const other = { ...key, fingerprint: "another query" };
  const paid = await past(organization, { key });
  const repeat = await past(organization, { key });
  const reused = await past(organization, { key: other });
  const plain = await past(organization);
  const visitor = await signIn(service, organization);
  const link = `<a href="/billing/searches/${paid}">The search that paid</a>`;
  const page = async (id: string) => (await visitor.get(`/billing/searches/${id}`)).text;
  expect(await page(repeat)).toContain("A repeat of a search that was already paid for");
  for (const follower of [repeat, reused]) expect(await page(follower)).toContain(link);
  for (const id of [paid, plain]) expect(await page(id)).not.toContain("The search that paid");

  // The key paid anew a day later: for another search, which this repeat did not follow.
  await asOwner(service.databaseUrl, (client) =>
    client.query("update answers set expires_at = now() where organization_id = $1", [organization.organizationId]),
  );
  expect(await page(repeat)).not.toContain("The search that paid");
  const anew = await past(organization, { key });
  expect(await page(anew)).toContain("Charged");
  expect(await page(repeat)).not.toContain("The search that paid");
});
