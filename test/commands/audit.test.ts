import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { readLine } from "../harness/clients/admin.ts";
import { ownForm, PageVisitor } from "../harness/clients/page-visitor.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";

/** The audit trail: who did what, and that nothing is done without its entry. `golden.test.ts` has what each command records. */

const service = await Service.start({ workers: 0, environment: { TRUSTED_PROXIES: "1" }, end: afterAll });
const operator = new Operator(service, { OPERATOR_NAME: "ada" });

/** The terms of a plan, as options of `plan set`. */
const terms = ["--price", "17", "--limit", "1", "--window", "1", "--concurrency", "1"];

const entrySchema = z.strictObject({
  id: z.int(),
  at: z.iso.datetime(),
  actorKind: z.string(),
  actor: z.string(),
  origin: z.string().nullable(),
  action: z.string(),
  orgId: z.string().nullable(),
  subject: z.string().nullable(),
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
  requestId: z.string().nullable(),
});

async function entries(...options: string[]) {
  const { stdout } = await operator.try("audit", "list", ...options);
  return z.object({ entries: z.array(entrySchema) }).parse(readLine(stdout)).entries;
}

test("a command that logs in as the owner of the database records too", async () => {
  const { orgId } = await operator.create("free");
  const owner = new Operator(service, { DATABASE_URL: service.databaseUrl, OPERATOR_NAME: "grace" });
  expect(await owner.try("org", "suspend", orgId)).toMatchObject({ exitCode: 0 });
  expect((await entries("--org", orgId)).at(-1)).toMatchObject({ action: "organization.suspended", actor: "grace" });
});

test("the entries since a time are found without reading the whole trail", async () => {
  await asOwner(
    service.databaseUrl,
    `insert into audit_entries (at, actor_kind, actor, action)
     select now() - interval '1 day', 'service', 'reconciler', 'ledger.gap_found' from generate_series(1, 50000)`,
  );
  await asOwner(service.databaseUrl, "vacuum analyze audit_entries");
  const rowsRead = async () => {
    const { rows } = await service.database.query(
      "select idx_tup_fetch + seq_tup_read as read from pg_stat_user_tables where relname = 'audit_entries'",
    );
    return Number(rows[0].read);
  };
  const { orgId } = await operator.create("free");
  const before = await rowsRead();
  const [newest] = (await entries("--since", new Date(Date.now() - 3_600_000).toISOString())).slice(-1);
  expect(newest).toMatchObject({ action: "token.issued", orgId });
  // Postgres counts some time after the end of a statement.
  await service.until(async () => (await rowsRead()) > before);
  expect((await rowsRead()) - before).toBeLessThan(25_000);
});

test("an entry says what was changed, from what to what", async () => {
  const { orgId } = await operator.create("free");
  await operator.run("plan", "set", "gold", ...terms);
  await operator.run("plan", "set", "gold", ...terms, "--price", "19");
  await operator.run("plan", "assign", orgId, "gold");
  await operator.run("credit", "grant", orgId, "50", "--id", `invoice of ${orgId}`, "--reason", "for Mrs. Smith");
  const set = await entries("--action", "plan.set");
  expect(set.filter(({ subject }) => subject === "gold")).toMatchObject([
    { before: null, after: { priceMils: 17 }, orgId: null },
    { before: { priceMils: 17, windowLimit: 1 }, after: { priceMils: 19, windowLimit: 1 } },
  ]);
  const own = await entries("--org", orgId);
  expect(own.slice(-2)).toMatchObject([
    { action: "plan.assigned", subject: "gold", before: { plan: "free" }, after: { plan: "gold" } },
    { subject: `invoice of ${orgId}`, before: { balanceMils: 1_000 }, after: { balanceMils: 1_050 } },
  ]);
  expect(JSON.stringify(own)).not.toContain("Smith");
  expect(await entries("--org", orgId, "--limit", "1")).toEqual(own.slice(-1));
  const { stderr } = await operator.try("audit", "list", "--org", orgId, "--limit", "1");
  expect(stderr).toBe("There are more than the newest 1. Use --limit, at most 10000.\n");
  expect(await entries("--org", orgId, "--since", own.at(-1)?.at ?? "")).toEqual(own.slice(-1));
  expect(await entries("--since", "2999-01-01")).toEqual([]);
});

test("a command whose entry Postgres refuses changes nothing", async () => {
  const { orgId, tokenId } = await operator.create("free");
  const state = async () => [
    await operator.run("org", "show", orgId),
    await operator.run("token", "list", orgId),
    await operator.run("plan", "list"),
  ];
  const before = await state();
  const asTheOwner = (statement: string) => asOwner(service.databaseUrl, (client) => client.query(statement));
  await asTheOwner("revoke insert (action) on audit_entries from serpmill");
  const tried = [
    ["org", "suspend", orgId],
    ["credit", "grant", orgId, "5"],
    ["token", "issue", orgId],
    ["token", "revoke", tokenId],
    ["plan", "set", "free", ...terms],
    ["plan", "assign", orgId, "payg"],
  ];
  for (const args of tried) expect([args, await operator.try(...args)]).toMatchObject([args, { exitCode: 1 }]);
  await asTheOwner("grant insert (action) on audit_entries to serpmill");
  expect(await state()).toEqual(before);
});

test("a sign-in and a sign-out are recorded with token, address and request; a refused sign-in is not", async () => {
  const { organizationId, token, tokenId } = await service.organization();
  const visitor = new PageVisitor(service, { "x-forwarded-for": "203.0.113.9" });
  const signIn = await visitor.signIn(token);
  const signOut = await visitor.post("/billing/sign-out", {}, ownForm);
  await visitor.post("/billing/sign-out", {}, ownForm);
  await visitor.signIn(`${token.slice(0, -1)}${token.endsWith("a") ? "b" : "a"}`);
  const actor = { actorKind: "account", actor: tokenId, origin: "203.0.113.9", subject: null };
  expect(await entries("--org", organizationId)).toMatchObject([
    { ...actor, action: "session.opened", requestId: signIn.requestId },
    { ...actor, action: "session.closed", requestId: signOut.requestId },
  ]);
  const logged = { requestId: signOut.requestId, organizationId, tokenId, address: "203.0.113.9" };
  await expect.poll(() => service.apis[0]?.lines).toContainEqual(expect.objectContaining(logged));
});

test("beyond 200 sign-ins in a day a token is refused and leaves no entry, while others sign in", async () => {
  const { organizationId, token, tokenId } = await service.organization();
  await service.redis.set(`sign-ins:${tokenId}`, "199", "EX", 86_400);
  const visitor = new PageVisitor(service, { "x-forwarded-for": "203.0.113.10" });
  expect(await visitor.signIn(token)).toMatchObject({ status: 303 });
  const refused = await visitor.signIn(token);
  expect(refused.status).toBe(429);
  expect(refused.text).toContain("This token has signed in too often today");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(86_000);
  expect(await visitor.signIn((await service.organization()).token)).toMatchObject({ status: 303 });
  expect(await entries("--org", organizationId)).toHaveLength(1);
});

test("beyond 1,000 sign-ins in a day an organization is refused with any of its tokens, and leaves no entry; tokens that only search use up none of these", async () => {
  const { organizationId, token } = await service.organization();
  await service.redis.set(`sign-ins:${organizationId}:search`, "1000", "EX", 86_400);
  await service.redis.set(`sign-ins:${organizationId}`, "999", "EX", 86_400);
  const searching = await service.issue(organizationId, { scopes: ["search"] });
  const signsIn = (own: string, at: string) => new PageVisitor(service, { "x-forwarded-for": at }).signIn(own);
  expect(await signsIn(searching.token, "203.0.113.13")).toMatchObject({ status: 429 });
  expect(await signsIn(token, "203.0.113.14")).toMatchObject({ status: 303 });
  const visitor = new PageVisitor(service, { "x-forwarded-for": "203.0.113.11" });
  const refused = await visitor.signIn(token);
  expect([refused.status, refused.text]).toEqual([
    429,
    expect.stringContaining("Your organization has signed in too often"),
  ]);
  expect(await entries("--org", organizationId)).toHaveLength(1);
});

test("a session that many requests end at once has one entry of its end", async () => {
  const { organizationId, token } = await service.organization();
  const visitor = new PageVisitor(service, { "x-forwarded-for": "203.0.113.12" });
  await visitor.signIn(token);
  const copies = Array.from(
    { length: 8 },
    () => new PageVisitor(service, { ...visitor.headers, cookie: visitor.cookie ?? "" }),
  );
  await Promise.all(copies.map((copy) => copy.post("/billing/sign-out", {}, ownForm)));
  const actions = (await entries("--org", organizationId)).map(({ action }: { action: string }) => action);
  expect(actions).toEqual(["session.opened", "session.closed"]);
});
