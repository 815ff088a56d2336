import type { Command } from "commander";
import { expect, test } from "vitest";
import { allCommands, runAdminHere } from "../harness/clients/admin.ts";

/** The output of commands that connect to no server: refused arguments and help. */

const unknownId = `org_${"0".repeat(26)}`;
const badNumber = /is invalid.* expected a whole number from/;
const badId = /is invalid.* expected org_ and 26 letters and digits/;
const free = ["--name", "Acme", "--plan", "free"];
const terms = ["--price", "5", "--limit", "1", "--window", "1", "--concurrency", "1"];

type Row = [args: string[], says: RegExp];

test.each<Row>([
  [["org", "create", "--plan", "free"], /required option '--name <name>' not specified/],
  [["org", "create", "--name", " ", "--plan", "free"], /'--name <name>'.* expected 1 to 200 characters/],
  [["org", "create", ...free, "--credit", "-5"], badNumber],
  [["org", "create", ...free, "--credit", "1.5"], badNumber],
  [["org", "create", ...free, "--credit", "9007199254740992"], badNumber],
  [["org", "create", ...free, "more"], /too many arguments/],
  [["org", "show", "org_1"], badId],
  [["credit", "grant", unknownId, "0"], badNumber],
  [["credit", "grant", unknownId, "5", "--id", ""], /'--id <grant>'.* expected 1 to 500 characters/],
  [["credit", "grant", unknownId], /missing required argument 'mils'/],
  ...["0", "1.2345", "-5", "12,50", "mils"].map(
    (amount): Row => [
      ["credit", "grant", unknownId, amount, "--usd"],
      /expected US dollars of at least 0.001 with up to three decimals, such as 12.50/,
    ],
  ),
  [["--usd", "credit", "correct", unknownId, "-0.00", "--reason", "x"], /error: the amount is 0/],
  [["limit", "org", unknownId, "--day", "much", "--usd"], /expected US dollars .*12.50, or none/],
  [["limit", "org", unknownId, "--day", "much"], /expected a whole number from 0 to 9007199254740991, or none/],
  [["credit", "correct", unknownId, "0", "--reason", "x"], /error: the amount is 0/],
  [["credit", "correct", unknownId, "-5"], /required option '--reason <text>' not specified/],
  [["auto-topup", "off", unknownId], /required option '--reason <reason>' not specified/],
  [
    ["auto-topup", "off", unknownId, "--reason", "as Mr. Smith asked"],
    /Allowed choices are disputed, payer_asked, suspected_fraud, other/,
  ],
  [["token", "issue", unknownId, "--expires", "0"], badNumber],
  [["token", "issue", unknownId, "--name", " "], /'--name <name>'.* expected 1 to 100 characters/],
  [["token", "issue", unknownId, "--name", "\u200b"], /expected at least one visible character/],
  [["org", "rename", unknownId, "\u202eemcA"], /expected text without bidirectional override/],
  ...["fly", "search,fly", "", "search,", ","].map(
    (list): Row => [
      ["token", "issue", unknownId, "--scopes", list],
      /'--scopes <list>'.* expected a comma list of search, usage, billing/,
    ],
  ),
  [["token", "revoke", unknownId], /expected tok_ and 26 letters and digits/],
  [["token", "issue", unknownId, "--scopes", "door,search", "--day", "5"], /expected door alone/],
  [["token", "issue", unknownId, "--scopes", "door"], /--day: expected an amount/],
  [["token", "find", "smk_1"], /^error: This is not a Serpmill token\. (?!.*smk_1)/],
  [["org", "erase", unknownId], /error: this cannot be undone\. Add --yes/],
  [["plan", "set", "Gold", ...terms], /expected a lower-case letter and up to 31 more/],
  [["plan", "set", "gold"], /error: no term given/],
  [["plan", "set", "gold", "--max-depth", "all"], /expected a whole number from 1 to 100, or none/],
  [["plan", "set", "gold", ...terms, "--limit", "0"], badNumber],
  [
    ["plan", "set", "gold", ...terms, "--price-per-page", "2"],
    /'--price-per-page <mils>' cannot be used with option '--price <mils>'/,
  ],
  [["plan", "set", "gold", ...terms, "--price-per-page", "900719925474100"], badNumber],
  [["plan", "set", "gold", ...terms, "--max-depth", "101"], badNumber],
  [["plan", "set", "gold", ...terms, "--operations", "fly"], /expected a comma list of serp.search, usage.get/],
  [["ledger", "list", unknownId, "--kind", "gift"], /Allowed choices are grant, charge, reversal/],
  ...["2026-13", "2026-3", "2026-03-01", "March"].map(
    (month): Row => [["ledger", "export", "--month", month, "--out", "."], /expected a month/],
  ),
  [["search", "raw", "org_1"], /expected the id of a search: req_ and 26 letters and digits/],
  [["webhook", "replay", "req_1"], /expected evt_ and 26 letters and digits/],
  [["ledger", "repair"], /unknown command 'repair'/],
  [["fly"], /unknown command 'fly'/],
  [["org", "shwo"], /unknown command 'shwo'\n\(Did you mean show\?\)/],
  [["org", "create", ...free, "--credits", "5"], /unknown option '--credits'\n\(Did you mean --credit\?\)/],
  [[], /Usage: admin/],
])("wrong arguments are refused with a sentence and exit code 2: %j", async (args, says) => {
  const { exitCode, stdout, stderr } = await runAdminHere(args, {});
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/^\s+at |\{/m);
});

test("--version prints the version of the release", async () => {
  const { exitCode, stdout } = await runAdminHere(["--version"], {});
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
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
