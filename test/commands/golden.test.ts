import { mkdtemp, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { hashToken } from "../../api/tokens/tokens.ts";
import { newId } from "../../shared/ids.ts";
import { appendEntry } from "../../worker/raw-answers/raw-answers.ts";
import { allCommands, type CommandResult } from "../harness/clients/admin.ts";
import { deliveredEvent } from "../harness/fixtures/delivered-event.ts";
import { savedCard } from "../harness/fixtures/saved-card.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { startLocationStub } from "../harness/stubs/location-stub.ts";
import { StripeStub } from "../harness/stubs/stripe-stub.ts";
import { contractCases } from "../worker/providers/contract-cases.ts";

/**
 * What each command prints, its text on a terminal and its JSON, and what it records in the audit trail, as the files of the folder
 * `golden` have them. After a wanted change, `npx vitest run test/commands/golden.test.ts -u` writes them anew.
 */

const columns = 120;

const named = { orgId: "", tokenId: "", token: "", searchId: "", eventId: "", gapId: "", rawId: newId("req") };
const folder = await mkdtemp(join(tmpdir(), "serpmill-archive-"));
const stripe = await StripeStub.start();
const lists = await startLocationStub({
  dataforseo: contractCases.dataforseo.page,
  serpapi: contractCases.serpapi.page,
});
const service = await Service.start();
const settings = { ...stripe.environment, ...lists.settings, SERP_PROVIDERS: "dataforseo,sandbox" };
const operator = new Operator(service, { ...settings, OPERATOR_NAME: "ada", RAW_ANSWER_MINUTES: "10" });
Object.assign(named, await operator.create("free"));
const call = { provider: "serper", page: 1, at: "2026-11-22T00:00:00Z", ms: 1, outcome: "success", status: 200 };
await appendEntry(service.redis, named.rawId, { call: { ...call, body: "{}", bodyCharacters: 2 } }, 600_000);
const searched = { keyword: "garden pump", location: "Munich, Germany", device: "mobile", depth: 1, format: "compact" };
named.searchId = await service.logged(await service.search(named.token, searched, { key: "a" }));
await service.rest();
named.eventId = await deliveredEvent(service.database, named.orgId);
named.gapId = newId("gap");
const openGap = `insert into ledger_gaps (id, organization_id, redis_version, redis_balance_mils, version, balance_mils)
  values ($1, $2, 8, 65, 4, 85)`;
await asOwner(service.databaseUrl, (owner) => owner.query(openGap, [named.gapId, named.orgId]));
await savedCard(service.database, named.orgId, 1);
stripe.paid(named.orgId, 1_000, { id: "cs_test_a1b2c3d4e5f6" });
const paid = [named.orgId, newId("pay"), "pi_3NvRkd2eZvKYlo2C0a1b2c3d", 10_000];
await service.database.query("select pay_auto_topup($1, $2, $3, $4, now())", paid);
afterAll(() => Promise.all([service.stop(), stripe.close(), lists.close(), rm(folder, { recursive: true })]));

const plan = ["--price", "5", "--limit", "60", "--window", "60", "--concurrency", "5"];

/** The arguments of each command, in the order in which they are run: each twice, at a terminal and with a pipe. */
const argumentsOf: Record<string, () => string[]> = {
  doctor: () => [],
  "org create": () => ["--name", "Acme", "--plan", "free"],
  "org show": () => [named.orgId],
  "org rename": () => [named.orgId, "Acme Search Ltd"],
  "org suspend": () => [named.orgId],
  "org list": () => [],
  "org resume": () => [named.orgId],
  "org find": () => ["search ltd"],
  "org keep-answers": () => [named.orgId],
  "org low-balance": () => [named.orgId, "--below", "500"],
  "webhook list": () => [named.orgId],
  "webhook replay": () => [named.eventId],
  "webhook remove": () => [named.orgId],
  "credit grant": () => [named.orgId, "500", "--id", "invoice 7", "--reason", "bank transfer"],
  "credit correct": () => [named.orgId, "-200", "--id", "case 12", "--reason", "granted twice"],
  "credit topups-check": () => [],
  "auto-topup show": () => [named.orgId],
  "auto-topup off": () => [named.orgId, "--reason", "disputed"],
  "token issue": () => [named.orgId, "--name", "Shop", "--scopes", "search,usage", "--expires", "30", "--day", "10"],
  "token list": () => [named.orgId],
  "token find": () => [named.token],
  "token revoke": () => [named.tokenId],
  "limit org": () => [named.orgId, "--day", "500"],
  "limit token": () => [named.tokenId, "--month", "500"],
  "plan set": () => ["trial", ...plan],
  "plan list": () => [],
  "plan assign": () => [named.orgId, "trial"],
  "ledger list": () => [named.orgId],
  "ledger gaps": () => [],
  "ledger gap-close": () => [named.gapId, "--note", "taken back as case 12"],
  "ledger verify": () => [],
  "ledger export": () => ["--month", "2026-01", "--out", folder],
  "ledger export-check": () => [join(folder, "ledger-2026-01.ndjson.gz")],
  "search show": () => [named.searchId],
  "search failures": () => ["--since", "2026-01-01"],
  "search raw": () => [named.rawId],
  "locations refresh": () => [],
  "locations list": () => [],
  "locations remove": () => ["dataforseo"],
  "providers check": () => [],
  "audit list": () => ["--limit", "3"],
  "org export": () => [named.orgId],
  "org erase": () => [named.orgId, "--yes"],
};

test("each command has its golden file", () => {
  const commands = allCommands().map(({ words }) => words.join(" "));
  expect(Object.keys(argumentsOf).toSorted()).toEqual(commands.toSorted());
});

let audited = 0;
/** The actions of the entries in the audit trail since the last call. */
async function recorded(): Promise<string[]> {
  const entries = "select action from audit_entries order by id offset $1";
  const { rows } = await service.database.query<{ action: string }>(entries, [audited]);
  audited += rows.length;
  return rows.map(({ action }) => action);
}
await recorded();

test.each(Object.keys(argumentsOf))("%s prints a text for people, and JSON for programs", async (command) => {
  const words = command.split(" ");
  const args = [...words, ...(argumentsOf[command]?.() ?? [])];
  const shown = [
    transcript(args, await operator.tryAtTerminal({ columns }, ...args), await recorded()),
    transcript([...args, "| cat"], await operator.try(...args), await recorded()),
  ].join("\n");
  // From here on no worker sends the events of webhooks.
  if (command === "doctor") await service.workers[0]?.stop();
  await expect(settled(shown, words)).toMatchFileSnapshot(`golden/${words.join("-")}.txt`);
});

test("every entry in the audit trail has the operator's name and machine, and no secret", async () => {
  const { rows } = await service.database.query("select * from audit_entries");
  expect(new Set(rows.map(({ actor, origin }) => `${actor} ${origin}`))).toEqual(new Set([`ada ${hostname()}`]));
  for (const secret of ["Acme", "hooks.example", named.token.slice(4, -4), hashToken(named.token).toString("hex")])
    expect(JSON.stringify(rows)).not.toContain(secret);
});

const transcript = (args: string[], { stdout, stderr, exitCode }: CommandResult, actions: string[]) =>
  `$ admin ${args.join(" ")}\n${stdout}${stderr && `stderr: ${stderr}`}exit code ${exitCode}` +
  `${actions.length > 0 ? `, recorded: ${actions.join(" ")}` : ""}\n`;

/** What differs from run to run is replaced by something as long. */
function settled(text: string, [word = ""]: string[]): string {
  const ids = new Map<string, string>();
  const idOf = (id: string, prefix: string) => {
    const known = ids.get(id) ?? `${prefix}_${String(ids.size + 1).padStart(26, "0")}`;
    ids.set(id, known);
    return known;
  };
  const same = text
    .replaceAll(folder, "FOLDER")
    .replaceAll(/\b[0-9a-f]{64}\b/g, "0".repeat(64))
    .replaceAll(/\b([a-z]{3,10})_[0-7][0-9a-z]{25}\b/g, idOf)
    .replaceAll(/\bsmk_[a-z0-9]{39}\b/g, `smk_${"x".repeat(39)}`)
    .replaceAll(/(last4(?:":"| +))[a-z0-9]{4}\b/g, "$1xxxx")
    .replaceAll(/\b[a-z0-9]{4}(?= {3}(?:valid|revoked) )/g, "xxxx")
    .replaceAll(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d/g, "2026-01-01T00:00:00")
    .replaceAll(/(T00:00:00)\.\d{3}Z/g, "$1.000Z")
    .replaceAll(/\b127\.0\.0\.1:\d+/g, "127.0.0.1:1")
    .replaceAll(/((?:durationMs|ms)":)\d+/g, "$19")
    .replaceAll(/(duration \(ms\) +)\d+/g, "$19")
    // The columns of calls are as wide as their times.
    .replaceAll(/^(provider +outcome) +ms .*\n─.*\n(\w+ +\w+) .*$/gm, "$1\n$2")
    .replaceAll(hostname(), "HOST");
  if (word === "doctor") return same.replaceAll("Valkey", "Redis").replaceAll(/\d+(\.\d+)*/g, "N");
  if (word === "providers")
    return same
      .replaceAll(/ *\d+(?= {2}mobile)/g, (ms) => "9".padStart(ms.length))
      .replaceAll(/(?<=latencyMs":)\d+/g, "9");
  return same;
}
