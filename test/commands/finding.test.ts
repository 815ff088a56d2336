import { afterAll, expect, test } from "vitest";
import { readLine } from "../harness/clients/admin.ts";
import { backdateLedger } from "../harness/fixtures/backdate-ledger.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { newToken } from "../../api/tokens/tokens.ts";

/** How operators find an organization, a token and an entry of the ledger, and correct a balance. */

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
const operator = new Operator(service);

const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

const create = async (name: string) =>
  String(Object(await operator.run("org", "create", "--name", name, "--plan", "free")).orgId);

test("an organization is found by a part of its name in any case, of its id or of a token's, and % is a letter", async () => {
  const [acme, berlin] = [await create("Acme 100% Ltd"), await create("ACME Berlin")];
  const shown = { plan: "free", balanceMils: 1_000, state: "active", createdAt: isoTime };
  expect(await operator.run("org", "find", "acme")).toEqual({
    organizations: [
      { orgId: berlin, name: "ACME Berlin", ...shown },
      { orgId: acme, name: "Acme 100% Ltd", ...shown },
    ],
  });
  expect(await operator.run("org", "find", "0% l")).toMatchObject({ organizations: [{ orgId: acme }] });
  expect(await operator.run("org", "find", berlin)).toMatchObject({ organizations: [{ orgId: berlin }] });
  const { orgId, tokenId } = await operator.create("free");
  for (const part of [orgId.slice(-12), orgId.toUpperCase(), tokenId, tokenId.slice(-12)])
    expect(await operator.run("org", "find", part)).toMatchObject({ organizations: [{ orgId }] });
  expect(await operator.run("org", "find", tokenId.slice(-5))).toEqual({ organizations: [] });
  expect(await operator.run("org", "find", "%")).toMatchObject({ organizations: [{ orgId: acme }] });
  expect(await operator.run("org", "find", "nothing like it")).toEqual({ organizations: [] });
});

test("the organization of many tokens is found among many, by a Postgres that sorts on disk", async () => {
  const { orgId } = await operator.create("free");
  await asOwner(service.databaseUrl, (owner) =>
    owner.query(`
      insert into organizations (id, name, plan_code)
        select 'org_0' || lpad(n::text, 25, '0'), 'One of many', 'free' from generate_series(1, 20000) n;
      insert into tokens (id, organization_id, hash, last4, scopes)
        select 'tok_0' || lpad(n::text, 25, '0'), '${orgId}', sha256(n::text::bytea), '', '{search}' from generate_series(1, 20000) n;
      do $$ begin execute format('alter database %I set work_mem = ''64kB''', current_database()); end $$`),
  );
  expect(await operator.run("org", "find", "tok_0000")).toMatchObject({ organizations: [{ orgId }] });
});

test("the list has the newest organizations first, and says how to see the next ones", async () => {
  const [older, newer] = [await create("Older"), await create("Newer")];
  await operator.run("org", "suspend", newer);
  const first = await operator.try("org", "list", "--limit", "1");
  expect(readLine(first.stdout)).toMatchObject({ organizations: [{ orgId: newer, state: "suspended" }] });
  expect(first).toMatchObject({ exitCode: 0, stderr: `There are more. For the next page: --before ${newer}\n` });
  const next = await operator.try("org", "list", "--limit", "1", "--before", newer);
  expect(readLine(next.stdout)).toMatchObject({ organizations: [{ orgId: older, name: "Older" }] });
});

test("a renamed organization has its new name everywhere, and the audit trail has neither name", async () => {
  const orgId = await create("Wrong Name");
  expect(await operator.run("org", "rename", orgId, "Right Name")).toEqual({ orgId, name: "Right Name" });
  await operator.run("org", "rename", orgId, "Right Name");
  expect(await operator.run("org", "show", orgId)).toMatchObject({ name: "Right Name" });
  const audit = JSON.stringify(await operator.run("audit", "list", "--org", orgId));
  expect(audit.match(/organization\.renamed/g)).toHaveLength(1);
  expect(audit).not.toContain("Name");
});

test("a token is found with its organization and state, by argument or stdin, and is never printed", async () => {
  const { orgId, tokenId, token } = await operator.create("free");
  const valid = { orgId, organization: "Acme", tokenId, last4: token.slice(-4), revokedAt: null, state: "valid" };
  expect(await operator.run("token", "find", token)).toMatchObject(valid);
  const piped = await operator.tryAtTerminal({ readLine: async () => `${token}  ` }, "token", "find", "-");
  expect(readLine(piped.stdout)).toMatchObject(valid);
  await operator.run("token", "revoke", tokenId);
  const revoked = await operator.try("token", "find", token);
  expect(readLine(revoked.stdout)).toMatchObject({ ...valid, revokedAt: isoTime, state: "revoked" });
  const unknown = newToken();
  const wrong = `${token.slice(0, -1)}${token.endsWith("a") ? "b" : "a"}`;
  for (const [given, exitCode, says] of [
    [unknown, 1, "This token was never issued here"],
    [wrong, 2, "This is not a Serpmill token"],
  ] as const) {
    const refused = await operator.try("token", "find", given);
    expect(refused).toMatchObject({ exitCode, stdout: "", stderr: expect.stringContaining(says) });
    expect(refused.stderr).not.toContain(given.slice(4, 20));
  }
  expect(piped.stdout + revoked.stdout).not.toContain(token.slice(4, 20));
});

test("entries of the ledger are listed by time and kind, oldest first, also as CSV that no spreadsheet runs", async () => {
  const { organizationId: orgId } = await service.organization({ creditMils: 0 });
  const hour = (n: number) => new Date(Date.UTC(2026, 2, 1, n));
  await backdateLedger(service.databaseUrl, orgId, [
    { at: hour(0), kind: "grant", mils: 100, reason: "=1+1" },
    { at: hour(1), kind: "charge", mils: 5 },
    { at: hour(2), kind: "grant", mils: 7 },
    { at: hour(3), kind: "charge", mils: 5 },
  ]);
  const listed = async (...options: string[]) => {
    const { stdout, stderr } = await operator.try("ledger", "list", orgId, ...options);
    const { entries } = Object(readLine(stdout));
    return [entries.map((entry: unknown) => Object(entry).version), stderr];
  };
  expect(await listed()).toEqual([[1, 2, 3, 4], ""]);
  expect(await listed("--kind", "grant")).toEqual([[1, 3], ""]);
  expect(await listed("--since", "2026-03-01T02:00Z")).toEqual([[3, 4], ""]);
  expect(await listed("--since", "2026-03-01T02:00Z", "--kind", "charge")).toEqual([[4], ""]);
  expect(await listed("--limit", "2")).toEqual([[3, 4], expect.stringContaining("There are more than the newest 2")]);
  const { stdout } = await operator.tryAtTerminal({ columns: 80 }, "ledger", "list", orgId, "--csv");
  expect(stdout.split("\n").slice(0, 2)).toEqual([
    "at,version,kind,amountMils,balanceAfterMils,requestId,tokenId,grantId,reason",
    expect.stringMatching(/^2026-03-01T00:00:00\.000Z,1,grant,100,100,,,grant_\w{26},'=1\+1$/),
  ]);
});

test("a correction lowers or raises a balance, once under an --id, never below 0, and is announced", async () => {
  const { orgId } = await operator.create("payg", "--credit", "100");
  const down = ["credit", "correct", orgId, "-30", "--reason", "granted twice", "--id", `case of ${orgId}`];
  const corrected = { orgId, correctionId: `case of ${orgId}`, balanceMils: 70 };
  expect(await operator.run(...down)).toEqual({ ...corrected, correctedMils: -30, repeated: false });
  expect(await operator.run(...down)).toEqual({ ...corrected, correctedMils: 0, repeated: true });
  const another = await operator.try(...down.map((word) => (word === "-30" ? "-31" : word)));
  expect(another).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("an earlier correction of -30 mils") });
  const below = await operator.try("credit", "correct", orgId, "-71", "--reason", "test");
  expect(below).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^A balance is at least 0 .* 70 mils\.\n$/),
  });
  expect(await operator.run("credit", "correct", orgId, "5", "--reason", "test")).toMatchObject({ balanceMils: 75 });
  expect(await service.redis.hget(keysOf(orgId).balance, "balance")).toBe("75");
});
