import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { readLine } from "../harness/clients/admin.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
const operator = new Operator(service);

const closedPort = "127.0.0.1:1";
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const unknownId = `org_${"0".repeat(26)}`;

test("a new organization gets a token and its plan's starting grant, or the credit that the operator sets", async () => {
  const free = await operator.create("free");
  expect(free).toMatchObject({ plan: "free", creditBalanceMils: 1_000 });
  expect(await operator.create("payg")).toMatchObject({ plan: "payg", creditBalanceMils: 0 });
  expect(await operator.create("free", "--credit", "0")).toMatchObject({ creditBalanceMils: 0 });
  const given = await operator.create("payg", "--credit", "123456");
  expect(given).toMatchObject({ plan: "payg", creditBalanceMils: 123_456 });

  expect(await service.ledgerOf(given.orgId)).toMatchObject([{ kind: "grant", mils: 123_456 }]);
});

test("an organization shows its unpaid provider calls though Redis answers late", async () => {
  const { orgId } = await operator.create("free");
  await service.redis.client("PAUSE", 1_500);
  expect(await operator.run("org", "show", orgId)).toMatchObject({ unpaidCalls: 0 });
});

test("a suspended organization shows since when, until it is resumed; repeating either changes nothing", async () => {
  const { orgId } = await operator.create("free");
  expect(await operator.run("org", "suspend", orgId)).toEqual({ orgId, suspended: true });
  const since = await operator.run("org", "show", orgId);
  expect(since).toMatchObject({ suspendedAt: isoTime });
  await operator.run("org", "suspend", orgId);
  expect(await operator.run("org", "show", orgId)).toEqual(since);
  expect(await operator.run("org", "resume", orgId)).toEqual({ orgId, suspended: false });
  expect(await operator.run("org", "resume", orgId)).toEqual({ orgId, suspended: false });
  expect(await operator.run("org", "show", orgId)).toMatchObject({ suspendedAt: null });
});

test("limits are shown with what was spent, changed one at a time, and removed with none", async () => {
  const { orgId, tokenId } = await operator.create("free");
  const none = { dayLimitMils: null, monthLimitMils: null, spentTodayMils: null, spentThisMonthMils: null };
  expect(await operator.run("limit", "org", orgId)).toEqual({ orgId, ...none });
  expect(await operator.run("limit", "token", tokenId)).toEqual({ orgId, tokenId, ...none });
  const counted = { spentTodayMils: 0, spentThisMonthMils: 0 };
  const daily = { orgId, dayLimitMils: 500, monthLimitMils: null, ...counted };
  expect(await operator.run("limit", "org", orgId, "--day", "500")).toEqual(daily);
  const both = await operator.run("limit", "org", orgId, "--month", "0");
  expect(both).toEqual({ ...daily, monthLimitMils: 0 });
  expect(await operator.run("limit", "org", orgId)).toEqual(both);
  const removed = await operator.run("limit", "org", orgId, "--day", "none", "--month", "none");
  expect(removed).toEqual({ orgId, ...none, ...counted });
  const monthly = await operator.run("limit", "token", tokenId, "--month", "70");
  expect(monthly).toEqual({ orgId, tokenId, dayLimitMils: null, monthLimitMils: 70, ...counted });
});

test("each grant adds credit, except a repeat under the same --id, which is refused with another amount", async () => {
  const { orgId } = await operator.create("payg");
  const grantId = expect.stringMatching(/^grant_[0-7][0-9a-z]{25}$/);
  const first = await operator.run("credit", "grant", orgId, "100");
  expect(first).toEqual({ orgId, grantId, grantedMils: 100, balanceMils: 100, repeated: false });
  await operator.run("credit", "grant", orgId, "100");

  const once = ["credit", "grant", orgId, "700", "--id", `invoice 7 of ${orgId}`, "--reason", "bank transfer"];
  const grant = { orgId, grantId: `invoice 7 of ${orgId}`, balanceMils: 900 };
  expect(await operator.run(...once)).toEqual({ ...grant, grantedMils: 700, repeated: false });
  expect(await operator.run(...once)).toEqual({ ...grant, grantedMils: 0, repeated: true });
  const copied = once.map((word) => (word === grant.grantId ? ` ${word} ` : word));
  expect(await operator.run(...copied)).toEqual({ ...grant, grantedMils: 0, repeated: true });
  const another = await operator.try(...once.map((word) => (word === "700" ? "7000" : word)));
  expect(another).toMatchObject({ exitCode: 1, stdout: "" });
  expect(another.stderr).toContain("belongs to an earlier grant of 700 mils, not 7000 mils. Nothing was changed.");
  expect(await service.ledgerOf(orgId)).toMatchObject([
    { kind: "grant", mils: 100, reason: "operator" },
    { kind: "grant", mils: 100, reason: "operator" },
    { kind: "grant", mils: 700, reason: "bank transfer" },
  ]);
});

test("a grant beyond the largest balance is refused and adds nothing", async () => {
  const { orgId } = await operator.create("payg", "--credit", "1");
  const { exitCode, stderr } = await operator.try("credit", "grant", orgId, "9007199254740991");
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: "A balance is at most 9007199254740991 mils. The balance is 1 mils.\n",
  });
  expect(await operator.run("org", "show", orgId)).toMatchObject({ balanceMils: 1, ledgerEntries: 1 });
});

const unlimited = { name: null, parentId: null, scopes: ["search", "usage", "billing"] };

test("a token has the name, the scopes and the end that it was issued with, also in the list", async () => {
  const { orgId } = await operator.create("free");
  const options = ["--name", "Shop search", "--scopes", "usage, search,usage", "--expires", "7"];
  const terms = { name: "Shop search", scopes: ["search", "usage"], expiresAt: isoTime };
  const issued = issuedToken.parse(await operator.run("token", "issue", orgId, ...options));
  expect(issued).toMatchObject(terms);
  expect(await operator.run("token", "list", orgId)).toMatchObject({
    tokens: [unlimited, { ...terms, tokenId: issued.tokenId, last4: issued.token.slice(-4), lastUsedAt: null }],
  });
});

const issuedToken = z.looseObject({ tokenId: z.string(), token: z.string() });

test("a token may search and read usage unless more is said, and a repeated revocation keeps the first time", async () => {
  const { orgId, tokenId } = await operator.create("free");
  await operator.run("token", "issue", orgId);
  await operator.run("token", "revoke", tokenId);
  const list = await operator.run("token", "list", orgId);
  expect(list).toMatchObject({
    tokens: [
      { tokenId, ...unlimited, revokedAt: isoTime },
      { ...unlimited, scopes: ["search", "usage"], expiresAt: null, revokedAt: null },
    ],
  });
  await operator.run("token", "revoke", tokenId);
  expect(await operator.run("token", "list", orgId)).toEqual(list);
});

const planList = z.strictObject({ plans: z.array(z.unknown()) });

test("plan set creates a plan or changes the given terms, and leaves the others and other plans as they are", async () => {
  const { plans } = planList.parse(await operator.run("plan", "list"));
  const trial = ["--price", "3", "--limit", "7", "--window", "10", "--concurrency", "2"];
  const fits = { belowCost: [], unknownCost: [] };
  const made = {
    code: "aa-trial_2",
    priceMils: 3,
    windowLimit: 7,
    windowSeconds: 10,
    concurrency: 2,
    unpaidCalls: 20,
    startingGrantMils: 0,
    operations: ["serp.search", "usage.get"],
  };
  expect(await operator.run("plan", "set", "aa-trial_2", ...trial)).toEqual({ ...made, ...fits });
  const changed = { ...made, priceMils: 0, operations: ["usage.get"] };
  const change = await operator.run("plan", "set", "aa-trial_2", ...trial, "--price", "0", "--operations", "usage.get");
  expect(change).toEqual({ ...changed, ...fits });

  expect(plans).toMatchObject([
    { code: "free", priceMils: 5, windowLimit: 60, windowSeconds: 60, concurrency: 5, startingGrantMils: 1_000 },
    { code: "payg", priceMils: 5, windowLimit: 600, windowSeconds: 60, concurrency: 100, startingGrantMils: 0 },
  ]);
  expect(await operator.run("plan", "list")).toEqual({ plans: [changed, ...plans] });

  const [, , ...rates] = trial;
  const paged = ["--price-per-page", "4", "--max-depth", "30"];
  const deep = { ...made, priceMils: 4, pricePerPageMils: 4, maxDepth: 30, operations: ["usage.get"] };
  expect(await operator.run("plan", "set", "aa-trial_2", ...rates, ...paged)).toEqual({ ...deep, ...fits });
  expect(await operator.run("plan", "set", "aa-trial_2", "--concurrency", "1")).toEqual({
    ...deep,
    ...fits,
    concurrency: 1,
  });
  const whole = { ...made, concurrency: 1, maxDepth: 30, operations: ["serp.search"] };
  const price = ["--price", "3", "--operations", "serp.search"];
  expect(await operator.run("plan", "set", "aa-trial_2", ...price)).toEqual({ ...whole, ...fits });
  const { maxDepth: _, ...anyDepth } = whole;
  expect(await operator.run("plan", "set", "aa-trial_2", "--max-depth", "none")).toEqual({ ...anyDepth, ...fits });
});

test.each([
  { args: ["org", "create", "--name", "Acme", "--plan", "gold"], says: /^There is no plan "gold"\. .*\n$/ },
  { args: ["org", "show", unknownId], says: /^There is no organization org_0{26}\.\n$/ },
  { args: ["org", "suspend", unknownId], says: /^There is no organization/ },
  { args: ["org", "resume", unknownId], says: /^There is no organization/ },
  { args: ["credit", "correct", unknownId, "5", "--reason", "x"], says: /^There is no organization/ },
  { args: ["credit", "grant", unknownId, "5"], says: /^There is no organization/ },
  { args: ["token", "issue", unknownId], says: /^There is no organization/ },
  { args: ["token", "list", unknownId], says: /^There is no organization/ },
  { args: ["token", "revoke", `tok_${"0".repeat(26)}`], says: /^There is no token tok_0{26}\.\n$/ },
  { args: ["plan", "assign", unknownId, "free"], says: /^There is no organization org_0{26}, or no plan "free"\.\n$/ },
  { args: ["auto-topup", "show", unknownId], says: /^There is no organization/ },
  { args: ["auto-topup", "off", unknownId, "--reason", "other"], says: /^There is no organization/ },
  { args: ["search", "failures", "--org", unknownId], says: /^There is no organization/ },
  { args: ["org", "rename", unknownId, "Acme"], says: /^There is no organization/ },
  { args: ["ledger", "list", unknownId], says: /^There is no organization/ },
  { args: ["limit", "org", unknownId, "--day", "1"], says: /^There is no organization/ },
  { args: ["plan", "set", "gold", "--price", "5"], says: /^There is no plan "gold" yet\. A new plan needs --price/ },
])("what does not exist is refused with a sentence and exit code 1: $args", async ({ args, says }) => {
  const { exitCode, stdout, stderr } = await operator.try(...args);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/^\s+at |violates|constraint|\{/m);
});

test("as a process, a command prints one line, and its exit code is 0, 1 if it is refused, and 3 without Postgres; the help names all codes", async () => {
  const [listed, refused, failed, help] = await Promise.all([
    operator.tryAsProcess("plan", "list"),
    operator.tryAsProcess("org", "show", unknownId),
    new Operator(service, { DATABASE_URL: `postgres://${closedPort}/none` }).tryAsProcess("plan", "list"),
    operator.try("--help"),
  ]);
  expect(listed).toMatchObject({ exitCode: 0, stderr: "" });
  expect(planList.parse(readLine(listed.stdout)).plans.length).toBeGreaterThanOrEqual(2);
  expect(refused).toEqual({ exitCode: 1, stdout: "", stderr: `There is no organization ${unknownId}.\n` });
  expect(failed).toEqual({ exitCode: 3, stdout: "", stderr: expect.stringMatching(/ECONNREFUSED.*\n$/) });
  expect(help).toEqual({
    exitCode: 0,
    stdout: expect.stringMatching(/^Usage: admin[^]*\nExit codes: 0 done/),
    stderr: "",
  });
});

test("at a standby of Postgres, a command that only reads works, and one that writes exits with 3", async () => {
  const url = new URL(service.databaseUrl);
  url.searchParams.set("options", "-c default_transaction_read_only=on");
  const standby = new Operator(service, { DATABASE_URL: url.href });
  expect(await standby.try("plan", "list")).toMatchObject({ exitCode: 0 });
  const message = /^Postgres at .* takes no writes, as a standby does\. Check DATABASE_URL, .*\n$/;
  const refused = await standby.try("org", "create", "--name", "Acme", "--plan", "payg");
  expect(refused).toEqual({ exitCode: 3, stdout: "", stderr: expect.stringMatching(message) });
});

test("without Redis the commands change Postgres, and warn that the API picks the change up later", async () => {
  const { orgId } = await operator.create("payg");
  const cutOff = new Operator(service, { REDIS_URL: `redis://${closedPort}` });
  const warning = "Redis is unreachable. The change is saved in Postgres, and the API picks it up from there.\n";
  const [granted, suspended, verified] = await Promise.all([
    cutOff.try("credit", "grant", orgId, "500"),
    cutOff.try("org", "suspend", orgId),
    cutOff.try("ledger", "verify"),
  ]);
  const unchecked = "Redis at 127.0.0.1:1 is unreachable: only Postgres was checked.\n";
  expect(verified).toMatchObject({ exitCode: 3, stderr: unchecked });
  expect(granted).toMatchObject({ exitCode: 0, stderr: warning });
  expect(readLine(granted.stdout)).toMatchObject({ grantedMils: 500, balanceMils: 500 });
  expect(suspended).toMatchObject({ exitCode: 0, stderr: warning });
  expect(await operator.run("org", "show", orgId)).toMatchObject({ balanceMils: 500, suspendedAt: isoTime });
  expect(readLine(verified.stdout)).toMatchObject({ ok: true, redisChecked: false, violations: [] });
});
