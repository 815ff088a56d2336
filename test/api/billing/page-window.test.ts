import { expect, test } from "vitest";
import { signedIn, signIn } from "../../harness/clients/page-visitor.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The window of the account pages, apart from the rate window of REST and MCP. */

const service = await usualService({ apis: 2 });

test("if the program has used up its rate window, its payer signs in, reads, exports and follows the account", async () => {
  const organization = await service.organization({ terms: { windowLimit: 1, windowSeconds: 1_000_000 } });
  for (const status of [200, 429]) expect((await service.usage(organization.token)).status).toBe(status);
  const visitor = await signIn(service, organization);
  const { status, text } = await visitor.get("/billing");
  expect(status).toBe(200);
  expect(text).toContain("<dt>Requests left</dt><dd>0 of 1</dd>");
  expect(await visitor.get("/billing/searches.csv")).toMatchObject({ status: 200 });
  const { status: followed, events } = await visitor.follow();
  expect(followed).toBe(200);
  expect((await events.next()).value?.event).toBe("part");
  await events.return(undefined);
});

test("an organization has sixty page requests a minute at all APIs together; then page, CSV and stream answer 429, for a minute at most, and the program is not affected", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const key = `pages:${organization.organizationId}`;
  for (const api of [0, 1]) {
    visitor.api = api;
    expect(await visitor.get("/billing")).toMatchObject({ status: 200 });
  }
  // With the sign-in.
  expect(await service.redis.get(key)).toBe("3");
  expect(await service.redis.ttl(key)).toBeLessThanOrEqual(60);
  // The other page requests. Their window is too long, as after the clock of Redis was set back.
  await service.redis.set(key, 59, "EX", 86_400);
  expect(await visitor.get("/billing")).toMatchObject({ status: 200 });
  for (const path of ["/billing", "/billing/searches.csv", "/billing/live"]) {
    const { status, headers, text } = await visitor.get(path);
    expect({ path, status }).toEqual({ path, status: 429 });
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(60);
    expect(headers.get("refresh")).toMatch(/^\d+$/);
    expect(text).toContain("Too many requests");
  }
  expect(await service.usage(organization.token)).toMatchObject({ status: 200 });
  expect(await (await signIn(service, await service.organization())).get("/billing")).toMatchObject({ status: 200 });
});

test("sessions that only search share a window, and use none of the page requests of the payer", async () => {
  const organization = await service.organization();
  const { organizationId } = organization;
  const searcher = async () => signIn(service, await service.issue(organizationId, { scopes: ["search"] }));
  const visitors = [await searcher(), await searcher()];
  await service.redis.set(`pages:${organizationId}:search`, 59, "EX", 60);
  const statuses = [];
  for (const visitor of visitors) statuses.push((await visitor.get("/playground")).status);
  expect(statuses).toEqual([200, 429]);
  expect(await (await signIn(service, organization)).get("/billing")).toMatchObject({ status: 200 });
});

test("an organization opens at most sixty sessions a minute, from however many networks", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const sessions = new Set(await service.redis.keys("session:*"));
  await service.redis.set(`pages:${organization.organizationId}`, 60, "EX", 60);
  expect(await visitor.signIn(organization.token)).toMatchObject({ status: 429 });
  expect(new Set(await service.redis.keys("session:*"))).toEqual(sessions);
});

test.each(["/billing", "/billing/searches?show=charged"])(
  "however many slow views of %s an organization opens, the API has connections to Postgres for the others",
  async (path) => {
    const [slow, other] = [await service.organization(), await service.organization()];
    const visitor = await signIn(service, slow);
    await asOwner(service.databaseUrl, async (client) => {
      // Every view waits for the ledger, until it is refused after two seconds.
      await client.query("begin; lock table ledger_entries in access exclusive mode");
      const views = Array.from({ length: 12 }, () => visitor.get(path));
      await service.until(async () => (await waitingForLedger()) > 0);
      // Redis has no copy of this organization's balance yet, so the API reads it from Postgres.
      expect(await service.usage(other.token)).toMatchObject({ status: 200 });
      await client.query("rollback");
      await Promise.all(views);
    });
  },
);

async function waitingForLedger(): Promise<number> {
  const waiting = "select from pg_locks where not granted and relation = 'ledger_entries'::regclass";
  return (await service.database.query(waiting)).rowCount ?? 0;
}
