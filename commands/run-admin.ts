import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { z } from "zod";
import { ConfigError } from "../shared/config.ts";
import { OutOfReach } from "../shared/config/out-of-reach.ts";
import { explainRefusal } from "../shared/database/process-login.ts";
import { addAuditCommands } from "./audit.ts";
import { addAutoTopupCommands } from "./auto-topups.ts";
import { addCreditCommands } from "./credit.ts";
import { addDoctorCommand } from "./doctor.ts";
import { addErasureCommands } from "./erasure/erasure.ts";
import { addLedgerCommands } from "./ledger.ts";
import { addLimitCommands } from "./limits.ts";
import { addLocationCommands } from "./locations.ts";
import { inAskedUnit } from "./money.ts";
import { addOrganizationCommands } from "./organizations.ts";
import { addPlanCommands } from "./plans.ts";
import { addProviderCommands } from "./providers.ts";
import { isSentence } from "./refusals.ts";
import { exitCodes, openRunCommand, openShowResult, type Terminal } from "./run-command.ts";
import { addSearchCommands } from "./search.ts";
import { addTokenCommands } from "./tokens.ts";
import { addWebhookCommands } from "./webhooks.ts";

/** The width of help that is printed to a pipe. */
const helpWidth = 80;

/** Runs one of the operator's commands. It never throws: what went wrong is on stderr and in the exit code. */
export async function runAdmin(args: readonly string[], terminal: Terminal): Promise<void> {
  const program = createProgram(terminal);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (thrown) {
    const error = explainRefusal(thrown);
    terminal.exitCode = exitCodeOf(error);
    // Commander has printed its own message.
    if (error instanceof CommanderError) return;
    const message = `${isSentence(error) ? "" : "Failed: "}${error instanceof Error ? error.message : String(error)}\n`;
    terminal.stderr(inAskedUnit(program, message));
  }
}

function exitCodeOf(error: unknown): number {
  // It also ends by an error after a help text, with exit code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.wrongUsage;
  if (error instanceof ConfigError) return exitCodes.wrongUsage;
  return error instanceof OutOfReach ? exitCodes.outOfReach : exitCodes.refused;
}

function readVersion(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

/** All commands. Nothing runs before the program parses arguments. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command("admin")
    .description(
      "The operator's commands. Each prints tables on a terminal, and one line of JSON to a pipe or a file. Refusals print the reason on stderr.",
    )
    .version(readVersion(), "--version", "print the version of this release")
    .option("--json", "print one line of JSON even on a terminal")
    .option("--usd", "type and read amounts in US dollars, such as 12.50, instead of mils; JSON always has mils")
    .addHelpText(
      "after",
      "\nExit codes: 0 done; 1 refused, or a problem was found; 2 wrong usage or settings; 3 Postgres or Redis is unreachable; 4 the ledger is broken.\nDATABASE_URL and REDIS_URL point to the service's data.\nExample: npm run admin -- org create --name Acme --plan free",
    )
    .showHelpAfterError("(add --help for the arguments)")
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: terminal.stdout,
      writeErr: terminal.stderr,
      getOutHelpWidth: () => terminal.columns ?? helpWidth,
      getErrHelpWidth: () => terminal.columns ?? helpWidth,
    })
    .exitOverride();
  const show = openShowResult(terminal, program);
  const run = openRunCommand(terminal, show, program);
  const org = addOrganizationCommands(program, run);
  addErasureCommands(org, run, terminal);
  addCreditCommands(program, run);
  addAutoTopupCommands(program, run);
  addTokenCommands(program, run, terminal);
  addLimitCommands(program, run);
  addWebhookCommands(program, org, run);
  addPlanCommands(program, run);
  addProviderCommands(program, show, terminal);
  addLocationCommands(program, run);
  addLedgerCommands(program, run);
  addSearchCommands(program, run);
  addAuditCommands(program, run);
  addDoctorCommand(program, { run, show, terminal });
  return program;
}
