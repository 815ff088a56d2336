import { mkdtemp, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { decideSettlements } from "../../shared/credits/ledger.ts";
import { hashToken } from "../../api/tokens/tokens.ts";
import { newId } from "../../shared/ids.ts";
import { appendEntry } from "../../worker/raw-answers/raw-answers.ts";
import { allCommands, readLine } from "../harness/clients/admin.ts";
import { ownForm, PageVisitor } from "../harness/clients/page-visitor.ts";
import { acknowledged, sendEvent } from "../harness/clients/topups.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { startLocationStub } from "../harness/stubs/location-stub.ts";
import { eventOf, StripeStub } from "../harness/stubs/stripe-stub.ts";
import { deliveredEvent } from "../harness/fixtures/delivered-event.ts";
import { openGap } from "../harness/fixtures/open-gap.ts";
import { savedCard } from "../harness/fixtures/saved-card.ts";
import { recordingCommands, terms } from "./recording-commands.ts";
import { contractCases } from "../worker/providers/contract-cases.ts";

/** The audit trail: who did what, and that nothing is done without its entry. */

const operatorName = "ada";
const stripe = await StripeStub.start();
const lists = await startLocationStub({
  dataforseo: contractCases.dataforseo.page,
  serpapi: contractCases.serpapi.page,
});
const service = await Service.start({ workers: 0, environment: { ...stripe.environment, TRUSTED_PROXIES: "1" } });
const settings = { ...stripe.environment, ...lists.settings, SERP_PROVIDERS: "dataforseo" };
const operator = new Operator(service, { ...settings, OPERATOR_NAME: operatorName });
afterAll(() => Promise.all([service.stop(), stripe.close(), lists.close()]));

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

/** The actions that were recorded while a command ran. */
async function recordedBy(...args: string[]): Promise<string[]> {
  const last = (await entries()).at(-1)?.id ?? 0;
  expect(await operator.try(...args)).toMatchObject({ exitCode: 0 });
  return (await entries()).filter(({ id }) => id > last).map(({ action }) => action);
}

const reading =
  "org show, org list, org find, token list, token find, plan list, audit list, locations list, ledger list, ledger gaps, ledger verify, ledger export-check, providers check, doctor, completion, search failures, webhook list, auto-topup show".split(
    ", ",
  );
const rawRequestId = newId("req");
const shownRequestId = newId("req");

test("every command that changes something leaves an entry under the operator's name; a repeat leaves none", async () => {
  const { orgId, tokenId, token } = await operator.create("free");
  const eventId = await deliveredEvent(service.database, orgId);
  await savedCard(service.database, orgId, 1);
  const gapId = await openGap(service.databaseUrl, orgId);
  const folder = await mkdtemp(join(tmpdir(), "serpmill-archive-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const ids = { orgId, tokenId, rawRequestId, shownRequestId, eventId, gapId };
  const recording = recordingCommands({ ...ids, folder });
  const named = [...Object.keys(recording), ...reading];
  expect(named.toSorted()).toEqual(
    allCommands()
      .map(({ words }) => words.join(" "))
      .toSorted(),
  );

  stripe.paid(orgId, 1_000);
  const refund = {
    organizationId: orgId,
    requestId: shownRequestId,
    wanted: "refund",
    reason: "provider_unavailable",
  } as const;
  await decideSettlements(service.database, [refund]);
  const noCall = { from: "cache", callsOf: null } as const;
  const call = { provider: "p", page: 1, at: "2026-11-22T00:00:00Z", ms: 1, outcome: "success", status: 200 };
  for (const entry of [{ noCall }, { call: { ...call, body: "{}", bodyCharacters: 2 } }]) {
    await appendEntry(service.redis, rawRequestId, entry, 600_000);
  }
  for (const [name, { args, actions }] of Object.entries(recording)) {
    expect([name, await recordedBy(...args)]).toEqual([name, actions]);
  }
  for (const args of [
    ["org", "erase", orgId, "--yes"],
    ["webhook", "remove", orgId],
    ["auto-topup", "off", orgId, "--reason", "other"],
    ["ledger", "gap-close", gapId, "--note", "again"],
    ["token", "revoke", tokenId],
    ["plan", "set", "trial", ...terms],
  ]) {
    expect([args, await recordedBy(...args)]).toEqual([args, []]);
  }
  const all = await entries();
  expect(new Set(all.map(({ actor, origin }) => `${actor} ${origin}`))).toEqual(
    new Set([`${operatorName} ${hostname()}`]),
  );
  for (const secret of ["Acme", "hooks.example", token.slice(4, -4), hashToken(token).toString("hex")])
    expect(JSON.stringify(all)).not.toContain(secret);
});

test("a command that logs in as the owner of the database records too, and cannot change what it recorded", async () => {
  const { orgId } = await operator.create("free");
  const owner = new Operator(service, { DATABASE_URL: service.databaseUrl, OPERATOR_NAME: "grace" });
  expect(await owner.try("org", "suspend", orgId)).toMatchObject({ exitCode: 0 });
  expect((await entries("--org", orgId)).at(-1)).toMatchObject({ action: "organization.suspended", actor: "grace" });
  const change = asOwner(service.databaseUrl, (client) => client.query("delete from audit_entries"));
  await expect(change).rejects.toThrow("the audit trail is append only");
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
    { ...actor, action: "session.opened", requestId: signIn.headers.get("x-request-id") },
    { ...actor, action: "session.closed", requestId: signOut.headers.get("x-request-id") },
  ]);
  const logged = { requestId: signOut.headers.get("x-request-id"), organizationId, tokenId, address: "203.0.113.9" };
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

test("beyond 1,000 sign-ins in a day an organization is refused with any of its tokens, and leaves no entry", async () => {
  const { organizationId, token } = await service.organization();
  await service.redis.set(`sign-ins:${organizationId}`, "1000", "EX", 86_400);
  const visitor = new PageVisitor(service, { "x-forwarded-for": "203.0.113.11" });
  const refused = await visitor.signIn(token);
  expect([refused.status, refused.text]).toEqual([
    429,
    expect.stringContaining("Your organization has signed in too often"),
  ]);
  expect(await entries("--org", organizationId)).toEqual([]);
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

test("a payment that Stripe reports is recorded once, with the id of its event", async () => {
  const { organizationId } = await service.organization({ plan: "free", creditMils: 0 });
  const event = eventOf(stripe.paid(organizationId, 1_000));
  for (const attempt of [1, 2])
    expect([attempt, await sendEvent(service, event)]).toMatchObject([attempt, acknowledged]);
  expect(await entries("--org", organizationId)).toMatchObject([
    {
      actorKind: "stripe",
      actor: event.id,
      action: "credit.topped_up",
      before: { balanceMils: 0, plan: "free" },
      after: { balanceMils: 10_000, plan: "payg" },
    },
  ]);
});
