import { afterAll, expect, test } from "vitest";
import { readLine } from "../harness/clients/admin.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { formatResult } from "../../commands/format-result.ts";

/** What commands print on a terminal and to a pipe, and how they end if Postgres or Redis is out of reach. */

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });
const operator = new Operator(service);

test("with --json a terminal gets what a pipe gets", async () => {
  const piped = await operator.try("plan", "list");
  expect(readLine(piped.stdout)).toMatchObject({ plans: [{ code: "free" }, { code: "payg" }] });
  expect(await operator.tryAtTerminal({ columns: 120 }, "plan", "list", "--json")).toEqual(piped);
});

test("with --usd amounts are typed, shown and named in messages in dollars, while JSON has mils", async () => {
  const { orgId } = await operator.create("payg", "--credit", "12.50", "--usd");
  const inUsd = async (...args: string[]) => {
    const { stdout, stderr } = await operator.tryAtTerminal({ columns: 120 }, ...args, "--usd");
    return stdout + stderr;
  };
  expect(await operator.run("org", "show", orgId, "--usd")).toMatchObject({ balanceMils: 12_500 });
  expect(await inUsd("org", "show", orgId)).toMatch(/^balance \(USD\) +12\.500$/m);
  expect(await inUsd("org", "find", orgId)).toMatch(/ balance \(USD\) .*\n.*\n.* {9}12\.500 /);
  const corrected = await inUsd("credit", "correct", orgId, "-0.005", "--reason", "case 1", "--id", orgId);
  expect(corrected).toMatch(/^corrected \(USD\) +-0\.005\nbalance \(USD\) +12\.495$/m);
  const another = await inUsd("credit", "correct", orgId, "-1", "--reason", "case 1", "--id", orgId);
  expect(another).toContain("an earlier correction of -$0.005, not -$1.000.");
  expect(await inUsd("limit", "org", orgId, "--day", "25", "--month", "none")).toMatch(/^day limit \(USD\) +25\.000$/m);
  expect(await inUsd("ledger", "list", orgId)).toMatch(/ correction +-0\.005 +12\.495 /);
  expect(await inUsd("audit", "list", "--org", orgId, "--action", "credit.corrected")).toContain(
    "balance (USD): 12.500",
  );
  await operator.run("org", "suspend", orgId);
  const asked: string[] = [];
  const ask = async (question: string) => String(asked.push(question));
  await operator.tryAtTerminal({ columns: 120, ask }, "org", "erase", orgId, "--usd");
  expect(asked).toEqual([expect.stringContaining("$12.495 of credit will be lost.")]);
});

const tokens = [
  { tokenId: "tok_00000000000000000000000001", name: "Shop search of the branch in Munich", uses: 5 },
  { tokenId: "tok_00000000000000000000000002", name: null, uses: 1_200 },
];

test("a table that is too wide for the terminal has its texts shortened, and never an id", () => {
  expect(formatResult({ tokens }, 56)).toBe(
    [
      "token id                        name                uses",
      "──────────────────────────────  ──────────────────  ────",
      "tok_00000000000000000000000001  Shop search of th…     5",
      "tok_00000000000000000000000002  -                   1200",
      "",
    ].join("\n"),
  );
});

test("a table that does not fit even so is one block of lines for each row, with whole texts", () => {
  expect(formatResult({ orgId: "org_1", createdAt: new Date(0), tokens }, 50)).toBe(
    [
      "org id   org_1",
      "created  1970-01-01T00:00:00Z",
      "",
      "token id  tok_00000000000000000000000001",
      "name      Shop search of the branch in Munich",
      "uses      5",
      "",
      "token id  tok_00000000000000000000000002",
      "name      -",
      "uses      1200",
      "",
    ].join("\n"),
  );
});

test("columns stay aligned beside wide letters, and an empty list says so", () => {
  const rows = [
    { name: "東京", id: 1 },
    { name: "Rome", id: 2 },
  ];
  expect(formatResult({ rows }, 80)).toBe("name  id\n────  ──\n東京   1\nRome   2\n");
  expect(formatResult({ rows: [] }, 80)).toBe("rows: none\n");
});

test("a name cannot move the cursor, colour the terminal or turn a line around", async () => {
  const name = "a\u001b[2Jb\u009bc\nd\u202ee\u200ff";
  const { organizationId } = await service.organization();
  // The commands refuse such a name.
  await service.database.query("update organizations set name = $2 where id = $1", [organizationId, name]);
  const { stdout } = await operator.tryAtTerminal({ columns: 120 }, "org", "show", organizationId);
  expect(stdout).toContain("a\\u{1b}[2Jb\\u{9b}c\\u{a}d\\u{202e}e\\u{200f}f\n");
});

const closedPort = "127.0.0.1:1";
const unknownRequest = "req_01m7xy02p3f9xsnhttx3p2c6sn";
const unknownId = `org_${"0".repeat(26)}`;

test.each([`ada:canary@${closedPort}`, "ada:canary@localhost:1"])(
  "without Postgres at %s the exit code is 3, and the message has its address without credentials",
  async (address) => {
    const cutOff = new Operator(service, { DATABASE_URL: `postgres://${address}/none` });
    const { exitCode, stdout, stderr } = await cutOff.try("plan", "list");
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: "" });
    const host = address.slice(address.indexOf("@") + 1);
    expect(stderr).toMatch(/^Postgres at \S+ is unreachable: connect ECONNREFUSED .*\. Check DATABASE_URL, .*\.\n$/);
    expect(stderr).toContain(`Postgres at ${host} is`);
    expect(stderr).not.toMatch(/ada|canary/);
  },
);

test("a Postgres that refuses the login is out of reach, and the message does not name the user", async () => {
  const url = new URL(service.processDatabaseUrl);
  const wrong = new Operator(service, { DATABASE_URL: Object.assign(new URL(url), { pathname: "/canary" }).href });
  const { exitCode, stderr } = await wrong.try("plan", "list");
  expect({ exitCode, stderr }).toEqual({
    exitCode: 3,
    stderr: `Postgres at ${url.hostname}:${url.port} refuses the login. Check DATABASE_URL, and that the server runs and is reachable.\n`,
  });
});

test.each([
  ["search", "raw", unknownRequest],
  ["org", "export", unknownId],
  ["org", "erase", unknownId, "--yes"],
])("without Redis a command that needs it exits with 3 and names it: %s %s", async (...args) => {
  const cutOff = new Operator(service, { REDIS_URL: `redis://ada:canary@${closedPort}` });
  const { exitCode, stdout, stderr } = await cutOff.try(...args);
  expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: "" });
  expect(stderr).toMatch(/^Redis at 127\.0\.0\.1:1 is unreachable: connect ECONNREFUSED .*\. Check REDIS_URL, .*\.\n$/);
  expect(stderr).not.toMatch(/ada|canary/);
});
