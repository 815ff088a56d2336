import type { Command } from "commander";
import { expect, test } from "vitest";
import { allCommands, runAdminHere } from "../harness/clients/admin.ts";

/** The output of commands that connect to no server: refused arguments and help. */

const unknownId = `org_${"0".repeat(26)}`;
const badNumber = /is invalid.* expected a whole number from/;
const badId = /is invalid.* expected org_ and 26 letters and digits/;
const free = ["--name", "Acme", "--plan", "free"];
const terms = ["--price", "5", "--limit", "1", "--window", "1", "--concurrency", "1"];

test.each([
  { args: ["org", "create", "--plan", "free"], says: /required option '--name <name>' not specified/ },
  { args: ["org", "create", "--name", " ", "--plan", "free"], says: /'--name <name>'.* expected 1 to 200 characters/ },
  { args: ["org", "create", ...free, "--credit", "-5"], says: badNumber },
  { args: ["org", "create", ...free, "--credit", "1.5"], says: badNumber },
  { args: ["org", "create", ...free, "--credit", "9007199254740992"], says: badNumber },
  { args: ["org", "create", ...free, "more"], says: /too many arguments/ },
  { args: ["org", "show", "org_1"], says: badId },
  { args: ["credit", "grant", unknownId, "0"], says: badNumber },
  { args: ["credit", "grant", unknownId, "5", "--id", ""], says: /'--id <grant>'.* expected 1 to 500 characters/ },
  { args: ["credit", "grant", unknownId], says: /missing required argument 'mils'/ },
  ...["0", "1.2345", "-5", "12,50", "mils"].map((amount) => ({
    args: ["credit", "grant", unknownId, amount, "--usd"],
    says: /expected US dollars of at least 0.001 with up to three decimals, such as 12.50/,
  })),
  { args: ["--usd", "credit", "correct", unknownId, "-0.00", "--reason", "x"], says: /error: the amount is 0/ },
  { args: ["limit", "org", unknownId, "--day", "much", "--usd"], says: /expected US dollars .*12.50, or none/ },
  {
    args: ["limit", "org", unknownId, "--day", "much"],
    says: /expected a whole number from 0 to 9007199254740991, or none/,
  },
  { args: ["credit", "correct", unknownId, "0", "--reason", "x"], says: /error: the amount is 0/ },
  { args: ["credit", "correct", unknownId, "-5"], says: /required option '--reason <text>' not specified/ },
  { args: ["auto-topup", "off", unknownId], says: /required option '--reason <reason>' not specified/ },
  {
    args: ["auto-topup", "off", unknownId, "--reason", "as Mr. Smith asked"],
    says: /Allowed choices are disputed, payer_asked, suspected_fraud, other/,
  },
  { args: ["token", "issue", unknownId, "--expires", "0"], says: badNumber },
  { args: ["token", "issue", unknownId, "--name", " "], says: /'--name <name>'.* expected 1 to 100 characters/ },
  { args: ["token", "issue", unknownId, "--name", "\u200b"], says: /expected at least one visible character/ },
  { args: ["org", "rename", unknownId, "\u202eemcA"], says: /expected text without bidirectional override/ },
  ...["fly", "search,fly", "", "search,", ","].map((list) => ({
    args: ["token", "issue", unknownId, "--scopes", list],
    says: /'--scopes <list>'.* expected a comma list of search, usage, billing/,
  })),
  { args: ["token", "revoke", unknownId], says: /expected tok_ and 26 letters and digits/ },
  { args: ["token", "issue", unknownId, "--scopes", "door,search", "--day", "5"], says: /expected door alone/ },
  { args: ["token", "issue", unknownId, "--scopes", "door"], says: /--day: expected an amount/ },
  { args: ["token", "find", "smk_1"], says: /^error: This is not a Serpmill token\. (?!.*smk_1)/ },
  { args: ["org", "erase", unknownId], says: /error: this cannot be undone\. Add --yes/ },
  { args: ["plan", "set", "Gold", ...terms], says: /expected a lower-case letter and up to 31 more/ },
  { args: ["plan", "set", "gold"], says: /error: no term given/ },
  { args: ["plan", "set", "gold", "--max-depth", "all"], says: /expected a whole number from 1 to 100, or none/ },
  { args: ["plan", "set", "gold", ...terms, "--limit", "0"], says: badNumber },
  {
    args: ["plan", "set", "gold", ...terms, "--price-per-page", "2"],
    says: /'--price-per-page <mils>' cannot be used with option '--price <mils>'/,
  },
  { args: ["plan", "set", "gold", ...terms, "--price-per-page", "900719925474100"], says: badNumber },
  { args: ["plan", "set", "gold", ...terms, "--max-depth", "101"], says: badNumber },
  {
    args: ["plan", "set", "gold", ...terms, "--operations", "fly"],
    says: /expected a comma list of serp.search, usage.get/,
  },
  { args: ["ledger", "list", unknownId, "--kind", "gift"], says: /Allowed choices are grant, charge, reversal/ },
  ...["2026-13", "2026-3", "2026-03-01", "March"].map((month) => ({
    args: ["ledger", "export", "--month", month, "--out", "."],
    says: /expected a month/,
  })),
  { args: ["search", "raw", "org_1"], says: /expected the id of a search: req_ and 26 letters and digits/ },
  { args: ["webhook", "replay", "req_1"], says: /expected evt_ and 26 letters and digits/ },
  { args: ["ledger", "repair"], says: /unknown command 'repair'/ },
  { args: ["fly"], says: /unknown command 'fly'/ },
  { args: ["org", "shwo"], says: /unknown command 'shwo'\n\(Did you mean show\?\)/ },
  {
    args: ["org", "create", ...free, "--credits", "5"],
    says: /unknown option '--credits'\n\(Did you mean --credit\?\)/,
  },
  { args: [], says: /Usage: admin/ },
])("wrong arguments are refused with a sentence and exit code 2: $args", async ({ args, says }) => {
  const { exitCode, stdout, stderr } = await runAdminHere(args, {});
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/^\s+at |\{/m);
});

test("--version prints the version of the release", async () => {
  const { exitCode, stdout } = await runAdminHere(["--version"], {});
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});

test.each([
  { args: [], lists: ["org", "credit", "token", "plan", "providers", "ledger", "Exit codes: 0 done"] },
  { args: ["org"], lists: ["create", "show", "suspend", "resume"] },
  { args: ["plan", "list"], lists: ["--json"] },
  { args: ["doctor"], lists: ["Exits with 0 if searches can be served"] },
  { args: ["search", "raw"], lists: ["Example: npm run"] },
])("--help lists commands and options: $args", async ({ args, lists }) => {
  const { exitCode, stdout, stderr } = await runAdminHere([...args, "--help"], {});
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  for (const part of lists) expect(stdout).toContain(part);
});

test("the --help of each command has its description, and each argument and option with what it means", async () => {
  for (const { words, command } of allCommands()) {
    const { exitCode, stdout, stderr } = await runAdminHere([...words, "--help"], {}, { columns: 1_000 });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const lines = stdout.split("\n");
    expect(lines[0]).toContain(`Usage: admin ${words.join(" ")} `);
    expect(lines[2]).toBe(command.description());
    const shown = [...command.registeredArguments.map((argument) => argument.name()), ...flagsOf(command)];
    for (const term of shown) expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^  ${term} +\\S`)));
  }
});

const flagsOf = (command: Command) => command.options.map(({ flags }) => flags);
