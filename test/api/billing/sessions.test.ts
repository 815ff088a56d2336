import { createHash } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { createSignInCode } from "../../../api/billing/session/sign-in-codes.ts";
import { readFamilyMember } from "../../../api/tokens/token-family.ts";
import { hashToken, newToken, revokeToken } from "../../../api/tokens/tokens.ts";
import { newId } from "../../../shared/ids.ts";
import { everythingInPostgres, everythingInRedis } from "../../harness/assertions/everything-in-redis.ts";
import { summed } from "../../harness/assertions/metrics.ts";
import { forgetSignIns, ownForm, PageVisitor } from "../../harness/clients/page-visitor.ts";
import { expectSecurityHeaders } from "../../harness/fixtures/refusals.ts";
import { Service } from "../../harness/processes/service.ts";

/** Sessions of the account pages, as OWASP ASVS requires, behind a trusted proxy. */

// One trusted proxy, so that each test has its own client address.
const service = await Service.start({ apis: 2, workers: 0, environment: { TRUSTED_PROXIES: "1" }, end: afterAll });

let addresses = 0;
function someone(): PageVisitor {
  addresses += 1;
  return new PageVisitor(service, { "x-forwarded-for": `198.51.100.${addresses}` });
}

async function signedIn() {
  const organization = await service.organization();
  const visitor = someone();
  expect(await visitor.signIn(organization.token)).toMatchObject({ status: 303 });
  return { organization, visitor };
}

const isForm = (text: string) => text.includes('action="/billing/sign-in"');
const isAccount = (text: string) => text.includes('action="/billing/sign-out"');
const idOf = (visitor: PageVisitor) => visitor.cookie?.split("=")[1] ?? "";
const keyOf = (visitor: PageVisitor) => `session:${createHash("sha256").update(idOf(visitor)).digest("hex")}`;

test("without a session every API shows the sign-in form, and with one the account", async () => {
  const stranger = await someone().get("/billing");
  expect(stranger.status).toBe(200);
  expect(isForm(stranger.text)).toBe(true);

  const { organization, visitor } = await signedIn();
  for (const api of [0, 1]) {
    visitor.api = api;
    const { status, text } = await visitor.get("/billing");
    expect(status).toBe(200);
    expect(isAccount(text)).toBe(true);
    expect(text).toContain(organization.organizationId);
    expect(text).not.toContain(organization.token.slice(4, -4));
  }
});

test("a sign-in leads to the page that the person asked for, and never to another site", async () => {
  const organization = await service.organization();
  const asked = "/billing/searches?show=charged";
  const { text } = await someone().get(asked);
  expect(isForm(text)).toBe(true);
  expect(text).toContain(`name="next" value="${asked}"`);
  const ways = {
    [asked]: asked,
    "https://evil.example/": "/billing",
    "//evil.example": "/billing",
    "/billing/../evil": "/billing",
    "/billing//evil.example": "/billing",
    "/billing\r\nSet-Cookie: a=b": "/billing",
    "/v1/usage": "/billing",
  };
  for (const [next, location] of Object.entries(ways)) {
    await forgetSignIns(service);
    const { headers } = await someone().post("/billing/sign-in", { token: organization.token, next });
    expect({ next, location: headers.get("location") }).toEqual({ next, location });
  }
});

test("the session id is random, and its cookie is HttpOnly and SameSite=Strict", async () => {
  const { organization, visitor } = await signedIn();
  expect(visitor.setCookie).toMatch(/^serpmill=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  const before = idOf(visitor);
  await visitor.signIn(organization.token);
  expect(idOf(visitor)).not.toBe(before);
});

test("a code of a link signs in once, for ten minutes, only from our own page, and only while its token is valid", async () => {
  const organization = await service.organization();
  const tokenHash = hashToken(organization.token).toString("hex");
  const newCode = async () => (await createSignInCode(service.redis, tokenHash)).replace("#sign-in=", "");
  const use = (code: string, headers = ownForm) =>
    someone().post("/billing/sign-in", { code, next: "/playground" }, headers);
  const code = await newCode();
  const [key = "", ...others] = await service.redis.keys("session:code:*");
  expect([others, await service.redis.ttl(key)]).toEqual([[], 600]);
  expect(await everythingInRedis(service.redis)).not.toContain(code);
  expect((await use(code, { "sec-fetch-site": "cross-site" })).status).toBe(400);
  const answers = await Promise.all([1, 2, 3].map(() => use(code)));
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(2);
  expect(answers.find(({ status }) => status === 303)?.headers.get("location")).toBe("/playground");
  for (const wrong of [code, "", "a".repeat(43), `${await newCode()}a`, organization.token]) {
    const { status, text } = await use(wrong);
    expect([status, text.includes("This link has been used, or is older than 10 minutes.")]).toEqual([401, true]);
  }
  const guesser = someone();
  const guesses = Array.from({ length: 11 }, (_, guess) => guesser.post("/billing/sign-in", { code: String(guess) }));
  expect((await Promise.all(guesses)).filter(({ status }) => status === 429)).toHaveLength(1);
  const late = await newCode();
  await revokeToken(service.database, organization.tokenId);
  await service.until(async () => (await service.search(organization.token, { keyword: "a" })).status === 401);
  expect((await use(late)).status).toBe(401);
});

test("over https the cookie is Secure, and no other host of the site can set it", async () => {
  const { token } = await service.organization();
  const visitor = someone();
  visitor.headers["x-forwarded-proto"] = "https";
  const answer = await visitor.signIn(token);
  expect(visitor.setCookie).toMatch(/^__Host-billing=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
  expect(answer.status).toBe(303);
  expect(isAccount((await visitor.get("/billing")).text)).toBe(true);
});

test("of two session cookies none counts, in any order, and the sign-in form says so", async () => {
  const [mine, planted] = [await signedIn(), await signedIn()];
  const own = mine.visitor.cookie ?? "";
  const foreign = planted.visitor.cookie ?? "";
  for (const cookie of [`${own}; ${foreign}`, `${foreign}; ${own}`, `${own};${foreign}`, `a=b; ${own}; c; ${own}`]) {
    mine.visitor.cookie = cookie;
    const { text, headers } = await mine.visitor.get("/billing");
    expect(isForm(text)).toBe(true);
    expect(text).toContain("Your browser sent more than one session cookie");
    expect(headers.get("set-cookie")).toBeNull();
    expect(await mine.visitor.get("/billing/searches.csv")).toMatchObject({ status: 401 });
    expect((await mine.visitor.get("/billing/live")).text).toBe("event: over\ndata:\n\n");
  }
  // A cookie that can be no session is no reason to refuse the one that is.
  const encoded = foreign.replace(/=(.)/, (_, first: string) => `=%${first.charCodeAt(0).toString(16)}`);
  mine.visitor.cookie = encoded;
  expect(isForm((await mine.visitor.get("/billing")).text)).toBe(true);
  mine.visitor.cookie = `serpmill=x; ${own}; ${encoded}; serpmill=; Serpmill=${idOf(planted.visitor)}`;
  expect(isAccount((await mine.visitor.get("/billing")).text)).toBe(true);
});

test("a sign-out with two session cookies ends both sessions", async () => {
  const [mine, planted] = [await signedIn(), await signedIn()];
  const copies = [mine, planted].map(({ visitor }) => Object.assign(someone(), { cookie: visitor.cookie }));
  mine.visitor.cookie = `${planted.visitor.cookie}; ${mine.visitor.cookie}`;
  expect(await mine.visitor.post("/billing/sign-out", {})).toMatchObject({ status: 303 });
  for (const copy of copies) expect(isForm((await copy.get("/billing")).text)).toBe(true);
});

test("a second sign-in opens a new session and ends the old one", async () => {
  const { organization, visitor } = await signedIn();
  const old = someone();
  old.cookie = visitor.cookie;
  await visitor.signIn(organization.token);
  expect(isForm((await old.get("/billing")).text)).toBe(true);
  expect(isAccount((await visitor.get("/billing")).text)).toBe(true);
});

test("a sign-out ends the session for every copy of its cookie", async () => {
  const { visitor } = await signedIn();
  const thief = someone();
  thief.cookie = visitor.cookie;
  expect(await visitor.post("/billing/sign-out", {})).toMatchObject({ status: 303 });
  expect(visitor.cookie).toBeUndefined();
  const { text } = await thief.get("/billing");
  expect(isForm(text)).toBe(true);
  expect(text).toContain("Your session has ended");
});

test("neither Redis nor Postgres nor the log has a token or a session id", async () => {
  const { organization, visitor } = await signedIn();
  await visitor.get("/billing");
  const [api] = service.apis;
  await service.until(async () => api?.lines.some(({ route }) => route === "/billing") ?? false);
  const kept = [
    await everythingInRedis(service.redis),
    await everythingInPostgres(service.databaseUrl),
    JSON.stringify(api?.lines),
  ].join();
  expect(kept).toContain(keyOf(visitor));
  expect(kept).toContain("/billing/sign-in");
  expect(kept).not.toContain(idOf(visitor));
  expect(kept).not.toContain(organization.token);
});

test("a session ends with its token, at every API", async () => {
  const { organization, visitor } = await signedIn();
  const elsewhere = someone();
  Object.assign(elsewhere, { api: 1, cookie: visitor.cookie });
  for (const each of [visitor, elsewhere]) expect(isAccount((await each.get("/billing")).text)).toBe(true);
  await revokeToken(service.database, organization.tokenId);
  await service.until(async () => isForm((await elsewhere.get("/billing")).text));
  expect(isForm((await visitor.get("/billing")).text)).toBe(true);
  expect(await service.redis.exists(keyOf(visitor))).toBe(0);
});

test("a session ends 30 minutes after the last page view, and 12 hours after the sign-in", async () => {
  const { visitor } = await signedIn();
  const key = keyOf(visitor);
  await service.redis.expire(key, 60);
  await visitor.get("/billing");
  expect(await service.redis.ttl(key)).toBeGreaterThan(1_790);
  expect(await service.redis.ttl(key)).toBeLessThanOrEqual(1_800);

  const { endsAtMs, ...rest } = JSON.parse((await service.redis.get(key)) ?? "");
  expect(Math.abs(endsAtMs - Date.now() - 12 * 3_600_000)).toBeLessThan(60_000);
  // The second was opened before the clock of Redis was set back by an hour.
  for (const wrongMs of [Date.now() - 1_000, endsAtMs + 3_600_000]) {
    await service.redis.set(key, JSON.stringify({ ...rest, endsAtMs }));
    expect(isForm((await visitor.get("/billing")).text)).toBe(false);
    await service.redis.set(key, JSON.stringify({ ...rest, endsAtMs: wrongMs }));
    expect(isForm((await visitor.get("/billing")).text)).toBe(true);
  }
});

test("an open page does not extend a session", async () => {
  const { visitor } = await signedIn();
  await service.redis.expire(keyOf(visitor), 60);
  const { status, events } = await visitor.follow();
  expect(status).toBe(200);
  await events.next();
  await events.return(undefined);
  expect(await service.redis.ttl(keyOf(visitor))).toBeLessThanOrEqual(60);
});

test("every invalid token gets the same answer", async () => {
  const { token, tokenId } = await service.organization();
  await revokeToken(service.database, tokenId);
  const visitor = someone();
  const answers = [];
  for (const each of ["", "x", newToken(), token, `${newToken()}0`]) answers.push(await visitor.signIn(each));
  for (const { status, text, headers } of answers) {
    expect(status).toBe(401);
    expect(text).toBe(answers[0]?.text);
    expect(text).toContain("This token is not valid");
    expect(headers.get("set-cookie")).toBeNull();
  }
});

test("a token in the address or in a header does not sign in", async () => {
  const { token } = await service.organization();
  expect(isForm((await someone().get(`/billing?token=${token}`)).text)).toBe(true);
  expect(isForm((await someone().get("/billing", { authorization: `Bearer ${token}` })).text)).toBe(true);
  expect(await someone().post(`/billing/sign-in?token=${token}`, {})).toMatchObject({ status: 401 });
});

test("an address has ten sign-in attempts a minute at all APIs together; other addresses are not affected", async () => {
  const { token } = await service.organization();
  const visitor = someone();
  for (let attempt = 0; attempt < 10; attempt += 1) {
    visitor.api = attempt % 2;
    expect(await visitor.signIn(newToken())).toMatchObject({ status: 401 });
  }
  const refused = await visitor.signIn(token);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("60");
  expect(visitor.cookie).toBeUndefined();
  expect(await someone().signIn(token)).toMatchObject({ status: 303 });
  expect(await summed(service.apis, 'sign_ins_total{outcome="limited"}')).toBeGreaterThan(0);
  // The counter expires after a minute.
  const keys = await service.redis.keys("sign-ins:*");
  for (const key of keys) expect(await service.redis.ttl(key)).toBeGreaterThan(0);
});

test("the IPv6 addresses of one /64 network count as one", async () => {
  const from = (address: string) => new PageVisitor(service, { "x-forwarded-for": address });
  for (let attempt = 1; attempt <= 10; attempt += 1) await from(`2001:db8::${attempt}`).signIn(newToken());
  expect(await from("2001:db8:0:0:ffff::1").signIn(newToken())).toMatchObject({ status: 429 });
  expect(await from("2001:db8:0:1::1").signIn(newToken())).toMatchObject({ status: 401 });
});

test("a request that is not a sign-in form is refused with a page", async () => {
  const json = { ...ownForm, "content-type": "application/json" };
  const answer = await service.send("/billing/sign-in", { method: "POST", headers: json, body: "{}" });
  expect(answer.status).toBe(400);
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
});

test("the trusted proxy says which requests came by https, so that their answers have HSTS", async () => {
  for (const protocol of ["https", "http"]) {
    const answer = await service.send("/v1/usage", { headers: { "x-forwarded-proto": protocol } });
    expect(answer.status).toBe(401);
    expectSecurityHeaders(answer, protocol === "https");
  }
});

test("a rotated token that ends now has ended, also if the clock of the API is ahead", async () => {
  const ahead = "const now = Date.now; Date.now = () => now() + 300_000;";
  await service.startApi({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ahead)}` });
  const { organization, visitor } = await signedIn();
  visitor.api = service.apis.length - 1;
  const { tokenId } = await service.issue(organization.organizationId);
  const form = { organization: organization.organizationId, token: tokenId, id: newId("tok"), ends: "0" };
  expect(await visitor.post("/billing/tokens/rotate", form)).toMatchObject({ status: 200 });
  expect(await readFamilyMember(service.database, tokenId, "any")).toMatchObject({ isValid: false });
});
