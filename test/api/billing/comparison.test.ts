import { afterAll, expect, test } from "vitest";
import { changesOf } from "../../../api/billing/searches/compare.ts";
import { confirmDelivered, reverseCharges } from "../../../shared/credits/deliveries.ts";
import { setKeptDays } from "../../../shared/credits/kept-answers.ts";
import { decideSettlements } from "../../../shared/credits/ledger.ts";
import type { Query } from "../../../shared/query/query.ts";
import { forgetPageViews, readable, signIn } from "../../harness/clients/page-visitor.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";
import { keepSearch } from "../../harness/fixtures/kept-search.ts";
import { requestIdAt } from "../../harness/fixtures/request-ids.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { operator } from "../../harness/fixtures/operator.ts";

/** The kept answer of a search on its page, what a person does next with the search, and what has changed since its previous answer. */

const service = await Service.start({ environment: { KEPT_ANSWERS_DAYS: "30" }, end: afterAll });

const dayMs = 86_400_000;

async function keeper(): Promise<Organization> {
  await forgetPageViews(service);
  const organization = await service.organization();
  await setKeptDays(service.database, { actor: operator, organizationId: organization.organizationId }, 30);
  return organization;
}

/** A charged and logged search whose answer is kept. @returns its request id. */
async function kept(
  { organizationId, tokenId }: Organization,
  {
    hosts = ["a.example", "b.example"],
    daysAgo = 0,
    fields = {},
    isDelivered = true,
  }: { hosts?: string[]; daysAgo?: number; fields?: Partial<Query>; isDelivered?: boolean } = {},
): Promise<string> {
  const requestId = requestIdAt(Date.now() - daysAgo * dayMs);
  await decideSettlements(service.database, [chargeOf(organizationId, { requestId, tokenId })]);
  if (isDelivered) await confirmDelivered(service.database, [requestId]);
  const search = { requestId, organizationId, tokenId };
  await keepSearch(service.database, search, { fields: { keyword: "tea", ...fields }, hosts });
  return requestId;
}

const rowsOf = (page: string) =>
  [...page.matchAll(/<tr class="[^"]*">(.*?)<\/tr>/gs)].map(([, row = ""]) => readable(row));

test("a search without a key has its answer on its page while its charge stands, with the domain, types and format that it asked for", async () => {
  const organization = await keeper();
  const whole = await kept(organization);
  const narrow = await kept(organization, { fields: { targetDomain: "b.example" } });
  const compact = await kept(organization, { fields: { format: "compact" } });
  const undelivered = await kept(organization, { isDelivered: false });
  const reversed = await kept(organization, { isDelivered: false });
  const { organizationId } = organization;
  await reverseCharges(service.database, [{ organizationId, requestId: reversed }], "undelivered");
  const visitor = await signIn(service, organization);
  const page = async (id: string) => (await visitor.get(`/billing/searches/${id}`)).text;
  for (const host of ["a.example", "b.example"]) expect(await page(whole)).toContain(`Title of ${host}</a>`);
  expect(await page(narrow)).toContain("Title of b.example</a>");
  expect(await page(narrow)).not.toContain("a.example");
  expect(await page(compact)).toContain("Title of a.example</a>");
  expect(await page(compact)).not.toContain("&quot;rank&quot;");
  for (const id of [undelivered, reversed]) expect(await page(id)).not.toContain("a.example");
  await confirmDelivered(service.database, [undelivered]);
  expect(await page(undelivered)).toContain("Title of a.example</a>");
  await setKeptDays(service.database, { actor: operator, organizationId }, 0);
  expect(await page(whole)).toContain("its answer is not kept, or no longer");
});

test("a search is compared with the last earlier answer to its query: what is new, gone, and how far each element moved", async () => {
  const organization = await keeper();
  await kept(organization, { hosts: ["older.example"], daysAgo: 2 });
  const before = await kept(organization, { hosts: ["a.example", "b.example", "c.example", "d.example"], daysAgo: 1 });
  // Neither of another query, nor one whose charge does not stand, nor a later one.
  await kept(organization, { hosts: ["x.example"], fields: { device: "mobile" } });
  await kept(organization, { hosts: ["y.example"], isDelivered: false });
  const now = await kept(organization, { hosts: ["c.example", "new.example", "a.example", "d.example"] });
  const later = await kept(organization, { hosts: ["c.example"] });
  const visitor = await signIn(service, organization);
  const page = (await visitor.get(`/billing/searches/${now}`)).text;
  expect(page).toContain(`href="/billing/searches/${now}/compare"`);
  const { text } = await visitor.get(`/billing/searches/${now}/compare`);
  expect(readable(text)).toContain("2 moved, 1 new, 1 unchanged, 1 gone");
  expect(text).toContain(`href="/billing/searches/${before}"`);
  expect(rowsOf(text)).toEqual([
    "1 3 up 2 Title of c.example organic",
    "2 – new Title of new.example organic",
    "3 1 down 2 Title of a.example organic",
    "4 4 unchanged Title of d.example organic",
    "– 2 gone Title of b.example organic",
  ]);
  expect((await visitor.get(`/billing/searches/${later}/compare`)).text).toContain(`href="/billing/searches/${now}"`);
  const first = await kept(organization, { fields: { keyword: "first of its kind" } });
  expect((await visitor.get(`/billing/searches/${first}`)).text).not.toContain("/compare");
  expect((await visitor.get(`/billing/searches/${first}/compare`)).text).toContain("There is no earlier answer");
});

test("searches under keys are compared for 24 hours although nothing is kept", async () => {
  await forgetPageViews(service);
  const organization = await service.organization();
  const ids: string[] = [];
  for (const key of ["one", "two"])
    ids.push(await service.logged(await service.search(organization.token, { keyword: "keyed tea" }, { key })));
  const visitor = await signIn(service, organization);
  const { text } = await visitor.get(`/billing/searches/${ids[1]}/compare`);
  expect(text).toContain(`href="/billing/searches/${ids[0]}"`);
  expect(readable(text)).toMatch(/ \d+ unchanged /);
  expect((await visitor.get(`/billing/searches/${ids[0]}`)).text).not.toContain("/compare");
});

test("no organization compares with the answers of another, and a session of a search token not with those of other tokens", async () => {
  const [organization, other] = [await keeper(), await keeper()];
  const { organizationId } = organization;
  const ann = { ...organization, ...(await service.issue(organizationId, { name: "ann", scopes: ["search"] })) };
  await kept(other, { daysAgo: 3 });
  const own = await kept(ann, { hosts: ["own.example"], daysAgo: 2 });
  const foreign = await kept(organization, { hosts: ["foreign.example"], daysAgo: 1 });
  // However many answers of other tokens are newer than its own.
  for (let newer = 1; newer <= 12; newer += 1) await kept(organization, { daysAgo: 1 + newer / 100 });
  const now = await kept(ann);
  const visitor = await signIn(service, ann);
  const { text } = await visitor.get(`/billing/searches/${now}/compare`);
  expect(text).toContain(`href="/billing/searches/${own}"`);
  for (const hidden of [foreign, "foreign.example"]) expect(text).not.toContain(hidden);
  for (const [id, status] of [
    [foreign, 404],
    [now, 200],
  ] as const)
    expect((await visitor.get(`/billing/searches/${id}/compare`)).status).toBe(status);
  const stranger = await signIn(service, other);
  expect((await stranger.get(`/billing/searches/${now}/compare`)).status).toBe(404);
  // The payer compares with the newest of all tokens.
  const payer = await signIn(service, organization);
  expect((await payer.get(`/billing/searches/${now}/compare`)).text).toContain(`href="/billing/searches/${foreign}"`);
});

test("a search is run again with its query by one button that has the price, and a session that may not search has none", async () => {
  await forgetPageViews(service);
  const organization = await service.organization({ terms: { pricePerPageMils: 3 } });
  const fields = { keyword: "run <again>", device: "mobile" as const, depth: 20, types: ["organic" as const] };
  const requestId = await kept(organization, { fields });
  const visitor = await signIn(service, organization);
  const { text } = await visitor.get(`/billing/searches/${requestId}`);
  expect(text).toContain("<button>Run again for $0.006</button>");
  const [form = ""] = /<form method="post" action="\/playground\/search">.*?<\/form>/s.exec(text) ?? [];
  const sent = [...form.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name = "", value = ""]) => [
    name,
    value.replace("&lt;", "<").replace("&gt;", ">"),
  ]);
  const answered = await visitor.post("/playground/search", Object.fromEntries(sent));
  expect([answered.status, answered.text.includes('for <data value="6"')]).toEqual([200, true]);
  expect(answered.text).toContain('value="run &lt;again&gt;"');
  const reader = await signIn(service, await service.issue(organization.organizationId, { scopes: ["billing"] }));
  expect((await reader.get(`/billing/searches/${requestId}`)).text).not.toContain("Run again");
});

test("a page of a shop is the same although Google gave its address another srsltid", () => {
  const at = (url: string) => ({ title: "Pump", url, description: "" });
  const changes = changesOf([at("https://shop.example/p?srsltid=B")], [at("https://shop.example/p?srsltid=A")]);
  expect(changes).toMatchObject([{ rank: 1, rankBefore: 1, change: "unchanged" }]);
});

test("elements without an address are the same by their titles, each is compared once, and places count where there are no ranks", () => {
  const at = (title: string, url = "") => ({ title, url, description: "" });
  const twice = at("A", "https://a.example/");
  expect(changesOf([at("one"), twice, twice], [twice, at("one"), at("two")])).toMatchObject([
    { rank: 1, rankBefore: 2, change: 1 },
    { rank: 2, rankBefore: 1, change: -1 },
    { rank: 3, change: "new" },
    { rankBefore: 3, change: "gone", element: { title: "two" } },
  ]);
});
