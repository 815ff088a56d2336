import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { Operator, readLine } from "../../harness/processes/operator.ts";
import { Service } from "../../harness/processes/service.ts";

let service: Service;
let operator: Operator;
beforeAll(async () => {
  service = await Service.start({ apis: 0, workers: 0 });
  operator = new Operator(service);
});
afterAll(() => service.stop());

const nowhere = "127.0.0.1:1";
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const nobody = `org_${"0".repeat(26)}`;

test("a new organization has a token and its plan's starting grant, or the credit that is named", async () => {
  const free = await operator.create("free");
  expect(free).toMatchObject({ plan: "free", creditBalanceMils: 1_000 });
  expect(await operator.create("payg")).toMatchObject({ plan: "payg", creditBalanceMils: 0 });
  expect(await operator.create("free", "--credit", "0")).toMatchObject({ creditBalanceMils: 0 });
  const given = await operator.create("payg", "--credit", "123456");
  expect(given).toMatchObject({ plan: "payg", creditBalanceMils: 123_456 });

  expect(await service.ledgerOf(given.orgId)).toMatchObject([{ kind: "grant", mils: 123_456 }]);
  expect(await operator.run("org", "show", given.orgId)).toEqual({
    orgId: given.orgId,
    name: "Acme",
    plan: "payg",
    suspendedAt: null,
    balanceMils: 123_456,
    ledgerEntries: 1,
    createdAt: isoTime,
  });
});

test("a suspended organization shows since when, until it is resumed; both may be repeated", async () => {
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

test("credit is added each time, but once for each id that is given", async () => {
  const { orgId } = await operator.create("payg");
  const grantId = expect.stringMatching(/^grant_[0-7][0-9a-z]{25}$/);
  const first = await operator.run("credit", "grant", orgId, "100");
  expect(first).toEqual({ orgId, grantId, grantedMils: 100, balanceMils: 100, repeated: false });
  await operator.run("credit", "grant", orgId, "100");

  const once = ["credit", "grant", orgId, "700", "--id", `invoice 7 of ${orgId}`, "--reason", "bank transfer"];
  const told = { orgId, grantId: `invoice 7 of ${orgId}`, balanceMils: 900 };
  expect(await operator.run(...once)).toEqual({ ...told, grantedMils: 700, repeated: false });
  expect(await operator.run(...once)).toEqual({ ...told, grantedMils: 0, repeated: true });
  expect(await service.ledgerOf(orgId)).toMatchObject([
    { kind: "grant", mils: 100, reason: "operator" },
    { kind: "grant", mils: 100, reason: "operator" },
    { kind: "grant", mils: 700, reason: "bank transfer" },
  ]);
});

test("a balance that no computer counts exactly is refused, and nothing is added", async () => {
  const { orgId } = await operator.create("payg", "--credit", "1");
  const { exitCode, stderr } = await operator.try("credit", "grant", orgId, "9007199254740991");
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: "A balance is at most 9007199254740991 mils.\n" });
  expect(await operator.run("org", "show", orgId)).toMatchObject({ balanceMils: 1, ledgerEntries: 1 });
});

test("a token is shown when it is issued and never again; revoked, it keeps its first time", async () => {
  const { orgId, tokenId, token } = await operator.create("free");
  const issued = await operator.run("token", "issue", orgId, "--expires", "30");
  expect(issued).toEqual({
    tokenId: expect.stringMatching(/^tok_[0-7][0-9a-z]{25}$/),
    token: expect.stringMatching(/^smk_[a-z0-9]{39}$/),
  });

  expect(await operator.run("token", "revoke", tokenId)).toEqual({ tokenId, revoked: true });
  const list = await operator.run("token", "list", orgId);
  const times = { createdAt: isoTime, expiresAt: null, revokedAt: isoTime, lastUsedAt: null };
  expect(list).toEqual({
    orgId,
    tokens: [
      { tokenId, last4: token.slice(-4), ...times },
      { tokenId: expect.any(String), last4: expect.any(String), ...times, expiresAt: isoTime, revokedAt: null },
    ],
  });
  await operator.run("token", "revoke", tokenId);
  expect(await operator.run("token", "list", orgId)).toEqual(list);
});

const planList = z.strictObject({ plans: z.array(z.unknown()) });

test("a plan is created and changed; the rest of the list stays as it is", async () => {
  const { plans } = planList.parse(await operator.run("plan", "list"));
  const terms = ["--price", "3", "--limit", "7", "--window", "10", "--concurrency", "2"];
  const made = {
    code: "aa-trial_2",
    priceMils: 3,
    windowLimit: 7,
    windowSeconds: 10,
    concurrency: 2,
    startingGrantMils: 0,
    operations: ["serp.search", "usage.get"],
  };
  expect(await operator.run("plan", "set", "aa-trial_2", ...terms)).toEqual(made);
  const changed = { ...made, priceMils: 0, operations: ["usage.get"] };
  const change = await operator.run("plan", "set", "aa-trial_2", ...terms, "--price", "0", "--operations", "usage.get");
  expect(change).toEqual(changed);

  expect(plans).toMatchObject([
    { code: "free", priceMils: 5, windowLimit: 60, windowSeconds: 60, concurrency: 5, startingGrantMils: 1_000 },
    { code: "payg", priceMils: 5, windowLimit: 600, windowSeconds: 60, concurrency: 100, startingGrantMils: 0 },
  ]);
  expect(await operator.run("plan", "list")).toEqual({ plans: [changed, ...plans] });
});

const badNumber = /is invalid.* expected a whole number from/;
const badId = /is invalid.* expected an id that begins with org_/;
const free = ["--name", "Acme", "--plan", "free"];
const terms = ["--price", "5", "--limit", "1", "--window", "1", "--concurrency", "1"];

test.each([
  { args: ["org", "create", "--name", "Acme", "--plan", "gold"], told: /^There is no plan "gold"; .*\n$/ },
  { args: ["org", "create", "--plan", "free"], told: /required option '--name <name>' not specified/ },
  { args: ["org", "create", "--name", " ", "--plan", "free"], told: /'--name <name>'.* expected 1 to 200 characters/ },
  { args: ["org", "create", ...free, "--credit", "-5"], told: badNumber },
  { args: ["org", "create", ...free, "--credit", "1.5"], told: badNumber },
  { args: ["org", "create", ...free, "--credit", "9007199254740992"], told: badNumber },
  { args: ["org", "create", ...free, "more"], told: /too many arguments/ },
  { args: ["org", "create", ...free, "--credits", "5"], told: /unknown option '--credits'/ },
  { args: ["org", "show", nobody], told: /^There is no organization org_0{26}\.\n$/ },
  { args: ["org", "show", "org_1"], told: badId },
  { args: ["org", "suspend", nobody], told: /^There is no organization/ },
  { args: ["org", "resume", nobody], told: /^There is no organization/ },
  { args: ["credit", "grant", nobody, "5"], told: /^There is no organization/ },
  { args: ["credit", "grant", nobody, "0"], told: badNumber },
  { args: ["credit", "grant", nobody, "5", "--id", ""], told: /'--id <grant>'.* expected 1 to 500 characters/ },
  { args: ["credit", "grant", nobody], told: /missing required argument 'mils'/ },
  { args: ["token", "issue", nobody], told: /^There is no organization/ },
  { args: ["token", "issue", nobody, "--expires", "0"], told: badNumber },
  { args: ["token", "list", nobody], told: /^There is no organization/ },
  { args: ["token", "revoke", `tok_${"0".repeat(26)}`], told: /^There is no token tok_0{26}\.\n$/ },
  { args: ["token", "revoke", nobody], told: /expected an id that begins with tok_/ },
  { args: ["plan", "set", "Gold", ...terms], told: /^A plan's code is a lower-case letter/ },
  { args: ["plan", "set", "gold", "--price", "5"], told: /required option '--limit <n>' not specified/ },
  { args: ["plan", "set", "gold", ...terms, "--limit", "0"], told: badNumber },
  {
    args: ["plan", "set", "gold", ...terms, "--operations", "fly"],
    told: /expected a comma list of serp.search, usage.get/,
  },
  { args: ["ledger", "repair"], told: /unknown command 'repair'/ },
  { args: ["fly"], told: /unknown command 'fly'/ },
  { args: [], told: /Usage: admin/ },
])("refused with a sentence and exit code 1: $args", async ({ args, told }) => {
  const { exitCode, stdout, stderr } = await operator.try(...args);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toMatch(told);
  expect(stderr).not.toMatch(/^\s+at |violates|constraint|\{/m);
});

test.each([
  { args: [], told: ["org", "credit", "token", "plan", "ledger"] },
  { args: ["org"], told: ["create", "show", "suspend", "resume"] },
  { args: ["org", "create"], told: ["--name", "--plan", "--credit"] },
  { args: ["credit", "grant"], told: ["<org>", "<mils>", "--id", "--reason"] },
  { args: ["token"], told: ["issue", "list", "revoke"] },
  { args: ["token", "issue"], told: ["<org>", "--expires"] },
  { args: ["plan", "set"], told: ["<code>", "--price", "--limit", "--window", "--concurrency", "--operations"] },
  { args: ["ledger", "verify"], told: ["every invariant"] },
])("--help tells what there is: $args", async ({ args, told }) => {
  const { exitCode, stdout, stderr } = await operator.try(...args, "--help");
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  for (const part of told) expect(stdout).toContain(part);
});

test("with Redis away the commands count in Postgres, and say that the API learns of it later", async () => {
  const { orgId } = await operator.create("payg");
  const cutOff = new Operator(service, { REDIS_URL: `redis://${nowhere}` });
  const warning = "Redis is unreachable: the change is saved in Postgres, and the API picks it up by itself.\n";
  const [granted, suspended, verified] = await Promise.all([
    cutOff.try("credit", "grant", orgId, "500"),
    cutOff.try("org", "suspend", orgId),
    cutOff.try("ledger", "verify"),
  ]);
  expect(granted).toMatchObject({ exitCode: 0, stderr: warning });
  expect(readLine(granted.stdout)).toMatchObject({ grantedMils: 500, balanceMils: 500 });
  expect(suspended).toMatchObject({ exitCode: 0, stderr: warning });
  expect(await operator.run("org", "show", orgId)).toMatchObject({ balanceMils: 500, suspendedAt: isoTime });
  expect(readLine(verified.stdout)).toMatchObject({ ok: true, redisChecked: false, violations: [] });
});

test.each([`postgres://${nowhere}/none`, "postgres://localhost:1/none"])(
  "with Postgres away (%s) a command fails with a sentence",
  async (DATABASE_URL) => {
    const { exitCode, stdout, stderr } = await new Operator(service, { DATABASE_URL }).try("plan", "list");
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toMatch(/^Failed: .*ECONNREFUSED.*\n$/);
  },
);
