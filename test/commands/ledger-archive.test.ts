import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";
import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { newId } from "../../shared/ids.ts";
import { type BackdatedEntry, backdateLedger } from "../harness/fixtures/backdate-ledger.ts";
import { createPayer } from "../harness/fixtures/payer.ts";
import { readLine } from "../harness/clients/admin.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { inTimeZone } from "../harness/servers/open-database.ts";

/** `ledger export` and `ledger export-check`. Each test has a database of its own, because an archive has all organizations. */

const lineSchema = z.looseObject({ kind: z.enum(["ledger", "ledger_entry", "total", "end"]) });
let service: Service;
let operator: Operator;
let folder: string;
beforeEach(async () => {
  service = await Service.start({ apis: 0, workers: 0 });
  operator = new Operator(service, { DATABASE_URL: inTimeZone(service.processDatabaseUrl, "Pacific/Auckland") });
  folder = await mkdtemp(join(tmpdir(), "serpmill-archive-"));
  return async () => {
    await service.stop();
    await rm(folder, { recursive: true });
  };
});

const fileOf = (month: string) => join(folder, `ledger-${month}.ndjson.gz`);
/** Runs a command that says on stderr how far it is, if the machine is slow. */
const runLong = async (...args: string[]) => readLine((await operator.try(...args)).stdout);
const write = (month: string) => runLong("ledger", "export", "--month", month, "--out", folder);
const refusalOf = async (...args: string[]) => {
  const { exitCode, stderr } = await operator.try("ledger", ...args);
  expect(exitCode).toBe(1);
  return stderr;
};
const check = (month: string) => refusalOf("export-check", fileOf(month));
const linesIn = async (month: string) => {
  const text = gunzipSync(await readFile(fileOf(month))).toString();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => lineSchema.parse(JSON.parse(line)));
};

const charge = (at: string, mils = 5): BackdatedEntry => ({ kind: "charge", at: new Date(at), mils });
const past: BackdatedEntry[] = [
  { kind: "grant", at: new Date("2026-02-28T23:59:59.999Z"), mils: 1_000 },
  charge("2026-03-01T00:00:00Z"),
  { kind: "correction", at: new Date("2026-03-10T10:00:00Z"), mils: -95, reason: "granted twice" },
  charge("2026-03-31T23:59:59.999Z"),
  charge("2026-04-01T00:00:00Z"),
  // Its transaction began in March, and waited for the lock until the one before it had ended.
  charge("2026-03-31T23:59:59.500Z"),
  charge("2026-04-02T00:00:00Z"),
];

/** An organization with these entries. */
async function payerWith(entries: readonly BackdatedEntry[]): Promise<string> {
  const organizationId = await createPayer(service.database);
  await backdateLedger(service.databaseUrl, organizationId, entries);
  return organizationId;
}

/** Changes the ledger around everything that protects it. */
const tamper = (statement: string, ...values: unknown[]) =>
  asOwner(service.databaseUrl, async (owner) => {
    await owner.query("set session_replication_role = replica");
    await owner.query(statement, values);
  });

test("while entries are lost and no operator has closed their gaps, an export and its check say that the ledger may lack some", async () => {
  await payerWith(past);
  const lost = `insert into ledger_gaps (id, organization_id, redis_version, redis_balance_mils, version, balance_mils)
    values ($1, $2, 9, 900, 7, 905)`;
  await asOwner(service.databaseUrl, lost, [newId("gap"), newId("org")]);
  const stderr = expect.stringContaining(
    "(open gaps: 1): ledger gaps lists them. The ledger of 2026-03 may lack some.",
  );
  const exporting = ["ledger", "export", "--month", "2026-03", "--out", folder];
  expect(await operator.try(...exporting)).toMatchObject({ exitCode: 0, stderr });
  expect(await operator.try("ledger", "export-check", fileOf("2026-03"))).toMatchObject({ exitCode: 0, stderr });
});

test("each entry is in the archive of exactly one month, with the totals of its organization, and sha256sum accepts it", async () => {
  const orgId = await payerWith(past);
  const idle = await payerWith([charge("2026-04-01T00:00:00Z", 0)]);
  const months = ["2026-02", "2026-03", "2026-04", "2026-05"];
  for (const month of months) await write(month);
  const all = await Promise.all(months.map((month) => linesIn(month)));
  const versions = all.map((lines) => lines.filter(({ kind, orgId: of }) => kind === "ledger_entry" && of === orgId));
  expect(versions.map((entries) => entries.map(({ version }) => version))).toEqual([[1], [2, 3, 4], [5, 6, 7], []]);
  expect(all[1]).toEqual([
    { kind: "ledger", month: "2026-03" },
    {
      kind: "ledger_entry",
      orgId,
      version: 2,
      at: "2026-03-01T00:00:00.000000Z",
      entry: "charge",
      amountMils: -5,
      balanceAfterMils: 995,
      requestId: expect.stringMatching(/^req_/),
      grantId: null,
      tokenId: expect.stringMatching(/^tok_/),
      reason: null,
    },
    expect.objectContaining({ version: 3, entry: "correction", amountMils: -95, reason: "granted twice" }),
    expect.objectContaining({ version: 4, at: "2026-03-31T23:59:59.999000Z", balanceAfterMils: 895 }),
    {
      kind: "total",
      orgId,
      entries: 3,
      firstVersion: 2,
      lastVersion: 4,
      balanceBeforeMils: 1_000,
      amountMils: -105,
      balanceAfterMils: 895,
    },
    { kind: "end", month: "2026-03", organizations: 1, entries: 3, amountMils: -105 },
  ]);
  expect(all[2]?.filter(({ kind }) => kind === "total").map(({ orgId: of }) => of)).toEqual([orgId, idle].toSorted());
  expect(all[3]).toEqual([
    { kind: "ledger", month: "2026-05" },
    { kind: "end", month: "2026-05", organizations: 0, entries: 0, amountMils: 0 },
  ]);
  const files = months.map((month) => `ledger-${month}.ndjson.gz.sha256`);
  await promisify(execFile)("sha256sum", ["--check", "--strict", ...files], { cwd: folder });
  expect((await stat(fileOf("2026-03"))).mode & 0o777).toBe(0o600);
});

test("a second export of a month changes nothing, and the audit trail has only the first", async () => {
  await payerWith(past);
  const first = await write("2026-03");
  expect(first).toMatchObject({ month: "2026-03", file: fileOf("2026-03"), organizations: 1, entries: 3, isNew: true });
  const before = await stat(fileOf("2026-03"));
  expect(await write("2026-03")).toEqual({ ...z.looseObject({}).parse(first), isNew: false });
  expect((await stat(fileOf("2026-03"))).mtimeMs).toBe(before.mtimeMs);
  const recorded = await operator.run("audit", "list", "--action", "ledger.exported");
  expect(recorded).toMatchObject({ entries: [{ subject: "2026-03", orgId: null }] });
});

test("a month that is not over is refused with the time from which it can be archived, and leaves no file", async () => {
  const month = new Date().toISOString().slice(0, 7);
  expect(await refusalOf("export", "--month", month, "--out", folder)).toMatch(
    new RegExp(`^${month} is not over: it can be archived from \\d{4}-\\d\\d-01T01:00:00\\.000Z on\\.\n$`),
  );
  expect(await readdir(folder)).toEqual([]);
});

test("a folder that does not exist, and what is no archive, are refused with the reason", async () => {
  expect(await refusalOf("export", "--month", "2026-03", "--out", join(folder, "none"))).toMatch(
    /^The folder \S+\/none does not exist\.\n$/,
  );
  expect(await check("2026-03")).toMatch(/cannot be read: ENOENT/);
  expect(await refusalOf("export-check", "/dev/zero")).toMatch(/cannot be read: ENOENT.*\/dev\/zero\.sha256/);
  const withChecksum = async (content: Buffer) => {
    await writeFile(fileOf("2026-03"), content);
    const sha256 = createHash("sha256").update(content).digest("hex");
    await writeFile(`${fileOf("2026-03")}.sha256`, `${sha256}  ledger-2026-03.ndjson.gz\n`);
    return check("2026-03");
  };
  expect(await withChecksum(Buffer.from("no archive"))).toMatch(/cannot be read: incorrect header check/);
  expect(await withChecksum(gzipSync("[]\n"))).toMatch(/is no archive of the ledger/);
  expect(await withChecksum(gzipSync("x".repeat(1_000_000)))).toMatch(/does not end with a whole line/);
});

test("the check finds a changed byte, a changed line, and a line too many or too few, also if the checksum fits", async () => {
  await payerWith(past);
  await write("2026-03");
  expect(await operator.run("ledger", "export-check", fileOf("2026-03"))).toMatchObject({
    entries: 3,
    amountMils: -105,
  });
  const whole = await readFile(fileOf("2026-03"));
  const changed = Buffer.from(whole);
  changed.writeUInt8(changed.readUInt8(40) ^ 1, 40);
  await writeFile(fileOf("2026-03"), changed);
  expect(await check("2026-03")).toMatch(/does not match .*\.sha256: one of them was changed or is damaged/);
  const rewritten = async (edit: (lines: string[]) => string[]) => {
    const content = gzipSync(edit(gunzipSync(whole).toString().split("\n")).join("\n"));
    await writeFile(fileOf("2026-03"), content);
    await writeFile(`${fileOf("2026-03")}.sha256`, `${createHash("sha256").update(content).digest("hex")}  -\n`);
    return check("2026-03");
  };
  const dearer = (line: string) => line.replace('"amountMils":-5', '"amountMils":-6');
  expect(await rewritten((lines) => lines.map(dearer))).toMatch(/differs from the ledger in line 2\./);
  expect(await rewritten((lines) => lines.toSpliced(2, 1))).toMatch(/differs from the ledger in line 3\./);
  expect(await rewritten((lines) => [...lines.slice(0, -1), "{}", ""])).toMatch(
    /has more than the ledger, from line 7/,
  );
  expect(await rewritten((lines) => lines.slice(0, 3).concat(""))).toMatch(/differs from the ledger in line 4\./);
  expect(await refusalOf("export", "--month", "2026-03", "--out", folder)).toMatch(/differs from the ledger in line 4/);
});

test("an entry that was altered or lost since shows, and a ledger that lacks an entry is not archived", async () => {
  const orgId = await payerWith(past);
  await write("2026-03");
  await tamper(
    "update ledger_entries set token_id = $2 where organization_id = $1 and version = 4",
    orgId,
    newId("tok"),
  );
  expect(await check("2026-03")).toMatch(/differs from the ledger in line 4\./);
  await tamper("update ledger_entries set amount_mils = -4 where organization_id = $1 and version = 6", orgId);
  expect(await refusalOf("export", "--month", "2026-04", "--out", folder)).toMatch(
    `The ledger of ${orgId} does not add up. Run ledger verify --full.`,
  );
  await tamper("delete from ledger_entries where organization_id = $1 and version = 6", orgId);
  expect(await refusalOf("export", "--month", "2026-04", "--out", folder)).toMatch(
    / lacks an entry\. Run ledger verify/,
  );
  expect((await readdir(folder)).filter((name) => name.includes("2026-04"))).toEqual([]);
});

test("an export that is killed leaves no archive, and the next one says what to delete", async () => {
  await payerWith(past);
  const args = ["ledger", "export", "--month", "2026-03", "--out", folder];
  expect(await operator.killBefore("balance_after_mils, e.request_id", ...args)).toBe("SIGKILL");
  expect(await readdir(folder)).toEqual(["ledger-2026-03.ndjson.gz.unfinished"]);
  expect(await refusalOf(...args.slice(1))).toMatch(
    /^The file \S+ledger-2026-03\.ndjson\.gz\.unfinished exists already\.\n$/,
  );
  await rm(`${fileOf("2026-03")}.unfinished`);
  expect(await write("2026-03")).toMatchObject({ entries: 3, isNew: true });
});

test("many organizations and a long ledger are archived whole, in slices", async () => {
  const long = Array.from({ length: 25_000 }, (_, n) =>
    charge(new Date(Date.UTC(2026, 2, 2) + n * 1_000).toISOString(), 0),
  );
  const large = await payerWith(long);
  await asOwner(service.databaseUrl, async (owner) => {
    await owner.query(
      `insert into organizations (id, name, plan_code, balance_mils, version)
       select 'org_' || lpad(n::text, 26, '0'), 'Small', 'payg', 7, 1 from generate_series(1, 1200) n`,
    );
    await owner.query(
      `insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, grant_id, reason, created_at)
       select id, 1, 'grant', 7, 7, 'grant ' || id, 'test', '2026-03-05' from organizations where name = 'Small'`,
    );
  });
  expect(await write("2026-03")).toMatchObject({ organizations: 1_201, entries: 26_200, amountMils: 8_400 });
  const lines = await linesIn("2026-03");
  expect(lines.filter(({ kind }) => kind === "ledger_entry")).toHaveLength(26_200);
  expect(new Set(lines.map(({ orgId, version }) => `${String(orgId)} ${String(version)}`)).size).toBe(
    26_200 + 1_201 + 1,
  );
  expect(await runLong("ledger", "export-check", fileOf("2026-03"))).toMatchObject({ entries: 26_200 });
  await tamper("delete from ledger_entries where organization_id = $1 and version = 12346", large);
  expect(await check("2026-03")).toMatch(`The ledger of ${large} lacks version 12346.`);
});
