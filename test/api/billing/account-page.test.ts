import { afterAll, expect, test } from "vitest";
import { setSuspended } from "../../../shared/organizations/organizations.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { PageVisitor, readable, signedIn, signIn } from "../../harness/clients/page-visitor.ts";
import { aMonth, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { startProxy } from "../../harness/servers/proxy.ts";
import { Service } from "../../harness/processes/service.ts";

/** The contents of the account pages and of their CSV, over HTTP. */

const service = await Service.start({ environment: { WORKER_CONCURRENCY: "4" }, end: afterAll });
const postgresProxy = await startProxy(service.database.options.connectionString ?? "", afterAll);
await service.startApi({ DATABASE_URL: postgresProxy.url, TOPUP_URL: "https://pay.example/credit" });

test("the page shows the same balance, holds, plan and rate window as REST, and takes nothing of that window", async () => {
  const organization = await service.organization({ creditMils: 12_345, terms: { windowLimit: 50, concurrency: 7 } });
  const { status } = await service.search(organization.token, { keyword: "coffee" });
  expect(status).toBe(200);
  const held = service.search(organization.token, { keyword: "sandbox:slow=3000" });
  await service.until(async () => (await service.holdsOf(organization.organizationId)).heldMils === 5);

  const visitor = await signIn(service, organization);
  const { text, headers } = await visitor.get("/billing");
  expect(headers.get("ratelimit")).toBeNull();
  const shown = readable(text);
  expect(shown).toMatch(
    /Available \$12\.335 Lasts until .+ Balance \$12\.340 On hold \$0\.005 for 1 search Last 24 hours 1 search/,
  );
  expect(shown).toContain("$0.005 per search");
  // The two searches, or fewer if a new window has started since.
  expect(shown).toMatch(/Requests left (48|49|50) of 50/);
  expect(shown).toContain("Searches in flight 1 of 7");
  expect((await service.usage(organization.token)).body.creditBalanceMils).toBe(12_335);
  await held;
});

test("the page shows a price per page, and the largest depth of the plan", async () => {
  const organization = await service.organization({ terms: { pricePerPageMils: 3, maxDepth: 50 } });
  const shown = readable((await (await signIn(service, organization)).get("/billing")).text);
  expect(shown).toContain("$0.003 per 10 results At most 50 results per search");
});

test("the CSV has every entry of its filter, and the mils of the whole history add up to the balance", async () => {
  const organization = await service.organization({ creditMils: 0 });
  await backdateLedger(service.databaseUrl, organization.organizationId, aMonth(new Date(), 12));
  const visitor = await signIn(service, organization);
  const whole = await visitor.get("/billing/searches.csv");
  expect(whole.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(whole.headers.get("content-disposition")).toBe('attachment; filename="serpmill-all.csv"');
  expect(whole.headers.get("cache-control")).toBe("no-store");
  const [head, ...rows] = whole.text.trimEnd().split("\n");
  expect(head).toMatch(/^time_utc,outcome,id,reason,mils,/);
  expect(rows.length).toBeGreaterThan(2_000); // More than one read of the ledger.
  const { creditBalanceMils } = (await service.usage(organization.token)).body;
  expect(rows.reduce((sum, row) => sum + Number(row.split(",")[4]), 0)).toBe(creditBalanceMils);

  const reversed = (await visitor.get("/billing/searches.csv?show=reversed")).text.trimEnd().split("\n").slice(1);
  expect(reversed.length).toBeGreaterThan(5);
  expect(reversed.filter((row) => row.split(",")[1] !== "reversed")).toEqual([]);
  expect(reversed.toSorted()).toEqual(rows.filter((row) => row.split(",")[1] === "reversed").toSorted());
});

test("an organization has one CSV download at a time, and those of other organizations wait for none of it", async () => {
  const organizations = await Promise.all(Array.from({ length: 3 }, () => service.organization()));
  const visitors: PageVisitor[] = [];
  for (const organization of organizations) visitors.push(await signIn(service, organization));
  await Promise.all(visitors.map((visitor) => visitor.get("/billing")));
  const [mine, second, third] = visitors.map((visitor) => () => visitor.get("/billing/searches.csv"));
  if (!mine || !second || !third) throw new Error("three visitors");

  await asOwner(service.databaseUrl, async (client) => {
    // Downloads wait for the ledger until this transaction ends. Refusals do not.
    await client.query("begin; lock table ledger_entries in access exclusive mode");
    const alone = [mine(), mine()];
    const refused = await Promise.race(alone);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("5");
    expect(refused.text).toContain("Too many requests");
    const others = [second(), third()];
    await client.query("rollback");
    const done = await Promise.all([...alone, ...others]);
    expect(done.filter(({ status }) => status === 200)).toHaveLength(3);
  });
  expect((await mine()).status).toBe(200);
});

test("the page says so if the organization is suspended or has too little credit", async () => {
  const suspended = await service.organization();
  await setSuspended(service.database, suspended.organizationId, true);
  const visitor = await signIn(service, suspended);
  const { text } = await visitor.get("/billing");
  expect(text).toContain("Your organization is suspended");
  expect(readable(text)).toContain("Contact the operator and give your organization ID");
  // The history stays readable.
  expect(text).toContain("Credit added");
  expect((await visitor.get("/billing/searches.csv")).text).toContain(",granted,");
  const lowOnCredit = await service.organization({ creditMils: 4 });
  expect((await (await signIn(service, lowOnCredit)).get("/billing")).text).toContain(
    "There is not enough credit for another search",
  );
});

test("without payments the page names the operator, or links to the address that the operator set", async () => {
  const organization = await service.organization();
  const asks = readable((await (await signIn(service, organization)).get("/billing")).text);
  expect(asks).toContain(
    `To add credit, contact the operator of this service and give your organization ID: ${organization.organizationId}`,
  );
  expect((await (await signIn(service, organization, { api: 1 })).get("/billing")).text).toContain(
    'href="https://pay.example/credit"',
  );
});

test("without Postgres a page says so and reloads by itself, as do a form and a download, and sessions stay open", async () => {
  const { organization, person: visitor } = await signedIn(service, {}, { api: 1 });
  postgresProxy.cut();
  const fields = { organization: organization.organizationId, dollars: "5" };
  for (const { status, text, headers } of [
    await visitor.get("/billing/searches"),
    await visitor.get("/billing/searches.csv"),
    await visitor.post("/billing/settings/low-balance", fields),
  ]) {
    expect([status, headers.get("retry-after"), headers.get("set-cookie")]).toEqual([503, "1", null]);
    expect(text).toContain("Back in a moment");
  }
  expect((await visitor.get("/billing/searches")).headers.get("refresh")).toBe("5");
  const { token } = await service.organization(); // A token that no API has cached.
  expect((await new PageVisitor(service).signIn(token)).status).toBe(303);
  const form = await Object.assign(new PageVisitor(service), { api: 1 }).signIn(token);
  expect([form.status, form.headers.get("refresh")]).toEqual([503, "5; url=/billing"]);
  postgresProxy.mend();
  await service.until(async () => (await visitor.get("/billing")).status === 200);
});

test("without Redis the page says so, and works again once Redis is back", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const { port } = service.redisServer;
  await service.redisServer.stop();
  await service.until(async () => (await visitor.get("/billing")).status === 503);
  expect((await visitor.get("/billing")).text).toContain("Back in a moment");
  expect((await visitor.signIn(organization.token)).status).toBe(503);
  const form = await visitor.post("/playground/search", { organization: organization.organizationId, keyword: "a" });
  expect([form.status, form.headers.get("refresh")]).toEqual([503, "5; url=/playground"]);
  await service.restartRedis(port);
  // Redis lost the sessions.
  await service.until(async () => (await visitor.get("/billing")).text.includes('action="/billing/sign-in"'));
});
