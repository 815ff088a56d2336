import { afterAll, beforeEach, expect, test } from "vitest";
import { forgetSignIns, PageVisitor, signedIn } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The playground: a search in a form, paid for as any other. */

const service = await usualService();
beforeEach(() => forgetSignIns(service));
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});

const search = (person: PageVisitor, { organizationId }: Organization, fields: Record<string, string>) =>
  person.post("/playground/search", { organization: organizationId, key: "form-1", ...fields });

test("the form shows the price and the code, and needs a session", async () => {
  const { person } = await signedIn(service);
  const page = await person.get("/playground?keyword=it%27s");
  expect(page.status).toBe(200);
  expect(page.text).toContain("$0.005");
  expect(page.text).toContain(` ${service.apis[0]?.url}/v1/serp/search`);
  expect(page.text).toContain("it&apos;s");
  const empty = (await person.get("/playground")).text;
  expect(empty).toContain('<span class="string">&quot;coffee&quot;</span>');
  expect((await new PageVisitor(service).get("/playground")).text).toContain('name="token"');
});

test("the address of a search's page, opened without its form, leads to the form", async () => {
  const { person } = await signedIn(service);
  const { status, headers } = await person.get("/playground/search");
  expect([status, headers.get("location")]).toEqual([303, "/playground"]);
});

test("a form that is sent twice, as by a reload or a double click, pays once; another query under its key pays again", async () => {
  const { organization, person } = await signedIn(service);
  const pages = await Promise.all([1, 2].map(() => search(person, organization, { keyword: "coffee" })));
  pages.push(await search(person, organization, { keyword: "coffee" }));
  for (const page of pages) {
    expect(page.status).toBe(200);
    for (const type of ["organic", "ai_overview", "people_also_ask"])
      expect(page.text).toMatch(new RegExp(`<li class="${type}[ "]`));
  }
  expect(await service.chargesOf(organization)).toEqual([{ kind: "charge", mils: -5 }]);
  await search(person, organization, { keyword: "coffee", depth: "20", device: "mobile" });
  expect(await service.chargesOf(organization)).toHaveLength(2);
});

test("an error is shown as the API sends it, keeps the form, and costs nothing", async () => {
  const { organization, person } = await signedIn(service);
  const refused = await search(person, organization, { keyword: "<b>", location: "Springfield" });
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("bad_request");
  expect(refused.text).toContain('value="&lt;b&gt;"');
  expect((await search(person, organization, { keyword: "sandbox:error" })).status).toBe(502);
  expect(await service.chargesOf(organization)).toEqual([{ kind: "refund", mils: 0 }]);
  const poor = await signedIn(service, { creditMils: 3 });
  expect((await search(poor.person, poor.organization, { keyword: "a" })).status).toBe(402);
  const reader = await signedIn(service, { scopes: ["billing"] });
  expect((await search(reader.person, reader.organization, { keyword: "a" })).status).toBe(401);
});

test("the form lists what its session searched, and only that, with links to each search and back into the form", async () => {
  const { organization, person } = await signedIn(service);
  const fields = {
    keyword: "coffee & tea",
    location: "Munich, Germany",
    device: "mobile",
    targetDomain: "example.com",
  };
  expect((await search(person, organization, fields)).text).toContain(">coffee &amp; tea</a>");
  const logged = () => person.get("/playground");
  await service.until(async () => (await logged()).text.includes(">coffee &amp; tea</a>"));
  const { text } = await logged();
  const [, own = ""] = /href="(\/billing\/searches\/req_\w+)"/.exec(text) ?? [];
  await service.rest();
  expect((await person.get(own)).status).toBe(200);
  const [, back = ""] = /class="again" href="(\/playground\?[^"]+)"/.exec(text) ?? [];
  const again = await person.get(back.replaceAll("&amp;", "&"));
  for (const value of ["coffee &amp; tea", "Munich,Germany", "example.com"])
    expect(again.text).toContain(`value="${value}"`);
  expect(again.text).toContain('value="mobile" selected');
  const other = new PageVisitor(service);
  await other.signIn(organization.token);
  expect((await other.get("/playground")).text).not.toContain("/billing/searches/req_");
});

test("a session's list has its ten newest searches", async () => {
  const { organization, person } = await signedIn(service);
  for (let n = 1; n <= 11; n += 1) await search(person, organization, { keyword: `search ${n}` });
  const { text } = await person.get("/playground");
  expect(new Set(text.match(/\/billing\/searches\/req_\w+/g)).size).toBe(10);
});
