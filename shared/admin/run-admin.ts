import { Command, CommanderError } from "commander";
import { explainRefusal } from "../database/check-session.ts";
import { StartRefused } from "../process/start-refused.ts";
import { addAuditCommands } from "./audit.ts";
import { CommandRefused } from "./command-refused.ts";
import { addDoctorCommand } from "./doctor/doctor.ts";
import { addErasureCommands } from "./erasure.ts";
import { addLedgerCommands } from "./ledger.ts";
import { addLocationCommands } from "./locations.ts";
import { addOrganizationCommands } from "./organizations.ts";
import { addPlanCommands } from "./plans.ts";
import { addProviderCommands } from "./providers.ts";
import { openRunCommand } from "./run-command.ts";
import { addSearchCommands } from "./search.ts";
import type { Terminal } from "./terminal.ts";
import { addLimitCommands } from "./limits.ts";
import { addTokenCommands } from "./tokens.ts";

/** Runs one of the operator's commands. It never throws: what went wrong is on stderr and in the exit code. */
export async function runAdmin(args: readonly string[], terminal: Terminal): Promise<void> {
  try {
    await createProgram(terminal).parseAsync(args, { from: "user" });
  } catch (thrown) {
    const error = explainRefusal(thrown);
    terminal.exitCode = 1;
    // Commander has printed its own message, and also ends by an error after a help text, with exit code 0.
    if (error instanceof CommanderError) terminal.exitCode = error.exitCode === 0 ? 0 : 1;
    else if (error instanceof CommandRefused || error instanceof StartRefused) terminal.stderr(`${error.message}\n`);
    else terminal.stderr(`Failed: ${error instanceof Error ? error.message : String(error)}\n`);
  }
}

/** All commands. Nothing runs before the program parses arguments. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command("admin")
    .description(
      "The operator's commands. Each prints one line of JSON (providers check prints a table, doctor text, search raw --body bodies). A command that is refused prints the reason and exits with 1.",
    )
    .addHelpText(
      "after",
      "\nDATABASE_URL and REDIS_URL say where the service's data is.\nExample: npm run admin -- org create --name Acme --plan free",
    )
    .showHelpAfterError("(add --help for the arguments)")
    .configureOutput({ writeOut: terminal.stdout, writeErr: terminal.stderr })
    .exitOverride();
  const run = openRunCommand(terminal);
  addErasureCommands(addOrganizationCommands(program, run), run, terminal);
  addTokenCommands(program, run);
  addLimitCommands(program, run);
  addPlanCommands(program, run);
  addProviderCommands(program, terminal);
  addLocationCommands(program, run);
  addLedgerCommands(program, run);
  addSearchCommands(program, run);
  addAuditCommands(program, run);
  addDoctorCommand(program, run, terminal);
  return program;
}
