import { expect, test } from "vitest";
import { readFamilyMember } from "../../../api/tokens/token-family.ts";
import { hashToken } from "../../../api/tokens/tokens.ts";
import { newId } from "../../../shared/ids.ts";
import { Operator } from "../../harness/processes/operator.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";
import { signedIn, signIn } from "../../harness/clients/page-visitor.ts";

/** The tokens and limits of an organization, as its account creates and changes them. */

const service = await usualService({ apis: 2 });
const operator = new Operator(service);

/** What a person fills in; the id is new, as in a page that was just opened. */
const filled = (organization: Organization, fields: Record<string, string> = {}) => ({
  organization: organization.organizationId,
  id: newId("tok"),
  name: "crawler",
  scope: "search",
  expires: "30",
  day: "",
  month: "",
  ...fields,
});

const secretOf = (text: string) => />(smk_[a-z0-9]{39})</.exec(text)?.[1] ?? "";

test("a token is shown once, may do what was chosen, and is in the list with its name, scopes, expiry, limits and use", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const form = filled(organization, { day: "1.50", month: "$20" });
  const made = await visitor.post("/billing/tokens/create", form);
  expect(made.status).toBe(200);
  expect(made.headers.get("cache-control")).toBe("no-store");
  const token = secretOf(made.text);
  expect((await service.search(token, { keyword: "coffee" })).status).toBe(200);
  expect((await service.usage(token)).status).toBe(401);
  const { text } = await visitor.get("/billing/tokens");
  expect(text).not.toContain(token);
  expect(text).toContain(`<code>smk_…${token.slice(-4)}</code>`);
  expect(text).toContain('title="1,500 mils">$1.500</data> a day');
  expect(text).toContain('title="20,000 mils">$20.000</data> a month');
  expect(text).toContain('title="5 mils">$0.005</data> <span class="aside">1 search</span>');
  expect(text).toContain("crawler</a>");
  const details = (await visitor.get(`/billing/tokens/${form.id}`)).text;
  expect(details).toContain("Spent today <data");
  const chart = /href="([^"]+)#usage"/.exec(details)?.[1] ?? "";
  expect((await visitor.get(chart)).text).toContain(`<option value="${form.id}" selected>crawler</option>`);
  expect(await operator.run("token", "list", organization.organizationId)).toMatchObject({
    tokens: [{}, { tokenId: form.id, name: "crawler", scopes: ["search"], expiresAt: expect.any(String) }],
  });
});

test("a form that was sent twice makes one token, says that the token cannot be shown again, and can make another", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const form = filled(organization);
  const answers = await Promise.all([1, 2, 3].map(() => visitor.post("/billing/tokens/create", form)));
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 409, 409]);
  const refused = answers.find(({ status }) => status === 409)?.text ?? "";
  expect(refused).toContain("This form was sent before");
  const { tokens } = (await operator.run("token", "list", organization.organizationId)) as { tokens: unknown[] };
  expect(tokens).toHaveLength(2);
  const [, id = ""] = /name="id" value="([^"]+)"/.exec(refused) ?? [];
  expect((await visitor.post("/billing/tokens/create", { ...form, id })).status).toBe(200);
});

test("each field that is wrong is named, and the others keep what was filled in", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const wrong = [
    ["name", " "],
    ["name", "\u200b"], // The link to the token would be invisible.
    ["name", "crawler\u202e"], // What follows in the list would be reversed.
    ["scope", "everything"],
    ["name", "a\0b"],
    ["expires", "31"],
    ["expires", "constructor"],
    ["day", "1.2345"],
    ["month", "-5"],
  ] as const;
  for (const [field, value] of wrong) {
    const { status, text } = await visitor.post(
      "/billing/tokens/create",
      filled(organization, { name: '"<b>', [field]: value }),
    );
    expect([field, status]).toEqual([field, 400]);
    expect(text).toContain(`id="${field}-problem"`);
    expect(text.match(/class="problem"/g)).toHaveLength(1);
    expect(text.includes('value="&quot;&lt;b&gt;"')).toBe(field !== "name");
    expect(text.includes('<option value="30" selected>')).toBe(field !== "expires");
  }
});

test("a revoked token is refused everywhere; revoking the session's own token signs out", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const form = filled(organization);
  const token = secretOf((await visitor.post("/billing/tokens/create", form)).text);
  expect((await service.search(token, { keyword: "coffee" }, { api: 1 })).status).toBe(200);
  const named = { organization: organization.organizationId, token: form.id };
  const revoked = await visitor.post("/billing/tokens/revoke", named);
  expect(revoked.headers.get("location")).toBe("/billing/tokens?revoked");
  await service.until(async () => (await service.search(token, { keyword: "coffee" }, { api: 1 })).status === 401);
  expect((await visitor.get("/billing/tokens?revoked")).text).toContain("Revoked and expired tokens (1)");

  const own = { organization: organization.organizationId, token: organization.tokenId };
  expect((await visitor.post("/billing/tokens/revoke", own)).headers.get("location")).toBe("/billing");
  expect((await visitor.get("/billing")).text).toContain('action="/billing/sign-in"');
});

test("a token is rotated in one step: its successor works at once, and it ends at the chosen time or with its own expiry", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const { organizationId, tokenId: ownId } = organization;
  const terms = { name: "crawler", scopes: ["search"], dayMils: 1_000, parentId: ownId } as const;
  const old = await service.issue(organizationId, { ...terms, expiresInDays: 2 });
  const rotate = (ends: string, token = old.tokenId, id = newId("tok")) =>
    visitor.post("/billing/tokens/rotate", { organization: organizationId, token, id, ends });
  const read = (id: string) => readFamilyMember(service.database, id, "any");

  const id = newId("tok");
  const rotated = await rotate("3600", old.tokenId, id);
  const successor = secretOf(rotated.text);
  const again = await rotate("3600", old.tokenId, id);
  expect([again.status, again.text]).toEqual([409, expect.stringContaining('<option value="3600" selected>')]);
  for (const token of [old.token, successor]) expect((await service.search(token, { keyword: "a" })).status).toBe(200);
  const bounds = { name: "crawler", dayLimitMils: 1_000, monthLimitMils: null, parentId: ownId };
  expect(await read(id)).toMatchObject({ ...bounds, expiresAt: old.expiresAt });
  const endsInMs = Number((await read(old.tokenId))?.expiresAt) - Date.now();
  expect(endsInMs).toBeGreaterThan(3_500_000);
  expect(endsInMs).toBeLessThan(3_600_000);

  // Its own end is earlier than in a week.
  const next = await rotate("604800", id);
  expect(next.text).toContain(`datetime="${old.expiresAt?.toISOString()}"`);
  expect((await read(id))?.expiresAt).toEqual(old.expiresAt);
  await rotate("0", id);
  await service.until(async () => (await service.search(successor, { keyword: "b" })).status === 401);
  expect((await rotate("0", id)).status).toBe(409);
  expect((await rotate("1", old.tokenId)).status).toBe(400);

  const listed = await operator.run("audit", "list", "--org", organizationId, "--action", "token.rotated");
  const { entries } = listed as { entries: { subject: string; actor: string }[] };
  expect(entries.map(({ subject, actor }) => [subject, actor])).toEqual(
    [old.tokenId, id, id].map((one) => [one, ownId]),
  );
});

test("a rotated token of a session ends the session with it, and its successor has no right that it had not", async () => {
  const { organization, person: visitor } = await signedIn(service, { scopes: ["billing"] });
  const { organizationId, tokenId: token } = organization;
  const form = { organization: organizationId, token, id: newId("tok"), ends: "0" };
  const { text } = await visitor.post("/billing/tokens/rotate", form);
  await service.until(async () => (await visitor.get("/billing")).text.includes("Your session has ended"));
  const successor = secretOf(text);
  expect((await (await signIn(service, { token: successor })).get("/billing")).text).toContain(organizationId);
  expect((await service.search(successor, { keyword: "a" })).status).toBe(401);
});

test.each([
  { title: "has a lower limit", terms: { dayMils: 5 }, says: "Enter at most" },
  { title: "expires earlier", terms: { expiresInDays: 2 }, says: "Your current token expires on" },
])("a token whose session's token $title is not rotated, and the page says why", async ({ terms, says }) => {
  const { organizationId } = await service.organization();
  const session = await service.issue(organizationId, { ...terms, scopes: ["billing"] });
  const visitor = await signIn(service, session);
  for (const expiresInDays of [undefined, 3]) {
    const { tokenId: token } = await service.issue(organizationId, { expiresInDays });
    const form = { organization: organizationId, token, id: newId("tok"), ends: "0" };
    const { status, text } = await visitor.post("/billing/tokens/rotate", form);
    expect([status, text]).toEqual([400, expect.stringMatching(`id="ends-problem">[^<]*${says}`)]);
    expect(await readFamilyMember(service.database, form.id)).toBeUndefined();
  }
});

test("an account neither sees nor changes the tokens of another organization", async () => {
  const [mine, other] = [await service.organization(), await service.organization()];
  const visitor = await signIn(service, mine);
  const named = { organization: mine.organizationId, token: other.tokenId, day: "1", month: "" };
  expect((await visitor.get(`/billing/tokens/${other.tokenId}`)).status).toBe(404);
  expect((await visitor.post("/billing/tokens/revoke", named)).status).toBe(404);
  expect((await visitor.post("/billing/tokens/limits", named)).status).toBe(404);
  expect((await service.search(other.token, { keyword: "coffee" })).status).toBe(200);
});

test("limits hold for searches, are repeated once saved, are shown with what was spent, and are removed by an empty field", async () => {
  const organization = await service.organization();
  const { organizationId } = organization;
  const { tokenId, token } = await service.issue(organizationId);
  const visitor = await signIn(service, organization);
  expect((await service.search(token, { keyword: "coffee" })).status).toBe(200);
  const doors = [
    { path: "/billing/settings/limits", page: "/billing/settings", saved: "done=limits", fields: {} },
    { path: "/billing/tokens/limits", page: `/billing/tokens/${tokenId}`, saved: "saved", fields: { token: tokenId } },
  ];
  for (const { path, page, saved, fields } of doors) {
    const set = (day: string) => visitor.post(path, { organization: organizationId, ...fields, day, month: "" });
    expect((await set("0.004")).headers.get("location")).toBe(`${page}?${saved}`);
    const search = async () => (await service.search(token, { keyword: "tea" })).status;
    await service.until(async () => (await search()) === 402);
    const { text } = await visitor.get(`${page}?${saved}`);
    expect(text).toContain("Limits saved. Daily: $0.004. Monthly: none.");
    expect(text).toContain('value="0.004"');
    expect(text).toContain("Spent today <data");
    for (const wrong of ["much", "0,505"])
      expect(await set(wrong)).toMatchObject({ status: 400, text: expect.stringContaining(`value="${wrong}"`) });
    expect((await set("")).status).toBe(303);
    await service.until(async () => (await search()) === 200);
  }
});

test("a session raises no limit of its organization above that of its own token, and may lower it", async () => {
  const { organizationId } = await service.organization();
  const visitor = await signIn(service, await service.issue(organizationId, { scopes: ["billing"], dayMils: 1_000 }));
  const set = (day: string) =>
    visitor.post("/billing/settings/limits", { organization: organizationId, day, month: "9" });
  expect((await set("5")).status).toBe(303); // It had none.
  for (const day of ["", "6"]) {
    const refused = await set(day);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("the limit of your current token")]);
  }
  expect((await set("4")).status).toBe(303);
});

test("a limit that a person leaves as it is shown keeps what another page has set since", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const { organizationId, tokenId } = organization;
  const fieldsOf = (text: string) =>
    Object.fromEntries(
      [...text.matchAll(/name="((?:was_)?(?:day|month))" value="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    );
  for (const { path, page, fields } of [
    { path: "/billing/settings/limits", page: "/billing/settings", fields: {} },
    { path: "/billing/tokens/limits", page: `/billing/tokens/${tokenId}`, fields: { token: tokenId } },
  ]) {
    const read = async () => fieldsOf((await visitor.get(page)).text);
    const save = (sent: Record<string, string>) =>
      visitor.post(path, { organization: organizationId, ...fields, ...sent });
    const [one, other] = [await read(), await read()];
    await save({ ...one, month: "30" });
    // A form that was refused still has what its page showed.
    await save({ ...fieldsOf((await save({ ...other, day: "much" })).text), day: "2" });
    expect(await read()).toMatchObject({ day: "2.00", month: "30.00" });
  }
});

test("every change by an account is in the audit trail, with its token, and without the new token", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const { organizationId, tokenId } = organization;
  const form = filled(organization, { day: "1" });
  const token = secretOf((await visitor.post("/billing/tokens/create", form)).text);
  const named = { organization: organizationId, token: form.id };
  await visitor.post("/billing/tokens/limits", { ...named, day: "2", month: "" });
  await visitor.post("/billing/tokens/revoke", named);
  await visitor.post("/billing/settings/limits", { organization: organizationId, day: "", month: "9" });
  const listed = await operator.run("audit", "list", "--org", organizationId);
  const { entries } = listed as { entries: { action: string; actorKind: string; actor: string; subject: string }[] };
  const byAccount = entries.filter(({ actor }) => actor === tokenId);
  expect(byAccount.map(({ action, actorKind, subject }) => [action, actorKind, subject])).toEqual([
    ["session.opened", "account", null],
    ["token.issued", "account", form.id],
    ["limit.set", "account", form.id],
    ["token.revoked", "account", form.id],
    ["limit.set", "account", null],
  ]);
  for (const secret of [token, hashToken(token).toString("hex"), "crawler"])
    expect(JSON.stringify(listed)).not.toContain(secret);
});

test("an organization makes at most fifty tokens a day, and has at most a hundred that are valid", async () => {
  const { organization, person: visitor } = await signedIn(service);
  const key = `pages:tokens:${organization.organizationId}`;
  const create = () => visitor.post("/billing/tokens/create", filled(organization));
  await service.redis.set(key, 50, "EX", 600);
  expect(await create()).toMatchObject({ status: 429, text: expect.stringContaining("at most 50 tokens a day") });
  await service.redis.del(key);
  await service.database.query(
    `insert into tokens (id, organization_id, hash, last4, scopes)
     select 'tok_' || lpad(n::text, 26, '0'), $1, sha256(n::text::bytea), 'abcd', '{search}' from generate_series(1, 99) n`,
    [organization.organizationId],
  );
  expect(await create()).toMatchObject({ status: 409, text: expect.stringContaining("at most 100 valid tokens") });
});

/** A session of a token that expires in 10 days and may spend $5 a day and $50 a month. */
async function boundedSession() {
  const organization = await service.organization();
  const bounded = await service.issue(organization.organizationId, { scopes: ["billing"], expiresInDays: 10 });
  await operator.run("limit", "token", bounded.tokenId, "--day", "5000", "--month", "50000");
  return { organization, bounded, visitor: await signIn(service, { ...organization, token: bounded.token }) };
}

test("a token that a token makes expires no later, and neither it nor its own maker gets a higher limit", async () => {
  const { organization, bounded, visitor } = await boundedSession();
  const create = (fields: Record<string, string>) =>
    visitor.post("/billing/tokens/create", filled(organization, { expires: "", day: "5", ...fields }));
  const { status, text } = await create({ expires: "30", day: "", month: "9" });
  const problems = [
    /id="expires-problem">Choose a time before /,
    /id="day-problem">Enter at most \$5\.000, the limit of/,
  ];
  expect([status, ...problems.map((one) => one.test(text))]).toEqual([400, true, true]);
  const form = filled(organization, { expires: "", day: "4", month: "50", scope: "billing" });
  expect((await visitor.post("/billing/tokens/create", form)).status).toBe(200);
  const ofParent = { parentId: bounded.tokenId, expiresAt: bounded.expiresAt };
  expect(await readFamilyMember(service.database, form.id)).toMatchObject(ofParent);
  const limit = (token: string, day: string) =>
    visitor.post("/billing/tokens/limits", { organization: organization.organizationId, token, day, month: "50" });
  for (const id of [form.id, bounded.tokenId])
    for (const day of ["5.001", ""]) expect((await limit(id, day)).text).toContain("Enter at most $5.000");
  expect((await limit(form.id, "5")).status).toBe(303);
  expect((await limit(bounded.tokenId, "2")).status).toBe(303);
  expect(await operator.run("limit", "token", form.id)).toMatchObject({ dayLimitMils: 2_000 });
  const refused = { exitCode: 1, stderr: expect.stringContaining("--day: expected at most 2000 mils") };
  expect(await operator.try("limit", "token", form.id, "--day", "2001")).toMatchObject(refused);
});

test("a person who revokes a token sees the valid ones that it made, and may revoke them with it", async () => {
  const { organization, bounded, visitor } = await boundedSession();
  const child = filled(organization, { expires: "", day: "5", month: "50", scope: "billing", name: "child" });
  const childToken = secretOf((await visitor.post("/billing/tokens/create", child)).text);
  const grandchild = filled(organization, { expires: "", day: "5", month: "50", name: "grandchild" });
  const childVisitor = await signIn(service, { ...organization, token: childToken });
  for (const more of [{ expires: "30" }, { day: "5.001" }, { month: "" }, { expires: "constructor" }])
    expect((await childVisitor.post("/billing/tokens/create", { ...grandchild, ...more })).status).toBe(400);
  const grandchildToken = secretOf((await childVisitor.post("/billing/tokens/create", grandchild)).text);
  expect(await readFamilyMember(service.database, grandchild.id)).toMatchObject({ expiresAt: bounded.expiresAt });
  expect(await operator.run("token", "revoke", bounded.tokenId)).toMatchObject({
    children: [
      { tokenId: child.id, parentId: bounded.tokenId, revoked: false },
      { tokenId: grandchild.id, parentId: child.id, revoked: false },
    ],
  });
  const owner = await signIn(service, organization);
  const link = `<a href="/billing/tokens/${grandchild.id}">grandchild</a>`;
  expect((await owner.get(`/billing/tokens/${child.id}`)).text).toContain(link);
  const form = { organization: organization.organizationId, token: child.id, children: "revoke" };
  expect((await owner.post("/billing/tokens/revoke", form)).status).toBe(303);
  await expect.poll(async () => (await service.search(grandchildToken, { keyword: "tea" })).status).toBe(401);
  expect(await operator.run("token", "revoke", bounded.tokenId, "--children")).toMatchObject({ children: [] });
});
