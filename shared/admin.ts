import { Command, CommanderError } from "commander";
import { addLedgerCommands } from "./admin/ledger.ts";
import { addOrganizationCommands } from "./admin/organizations.ts";
import { addPlanCommands } from "./admin/plans.ts";
import { addProviderCommands } from "./admin/providers.ts";
import { addTokenCommands } from "./admin/tokens.ts";
import { CommandRefused } from "./admin/command-refused.ts";
import { ConfigError } from "./config.ts";

const program = new Command("admin")
  .description(
    "The operator's commands. Each prints one line of JSON (providers check a table); refused, it says why and exits with 1.",
  )
  .addHelpText(
    "after",
    "\nDATABASE_URL and REDIS_URL tell where the service's data is.\nExample: npm run admin -- org create --name Acme --plan free",
  )
  .showHelpAfterError("(add --help for the arguments)")
  .exitOverride();
addOrganizationCommands(program);
addTokenCommands(program);
addPlanCommands(program);
addProviderCommands(program);
addLedgerCommands(program);

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = 1;
  if (error instanceof CommanderError) process.exitCode = error.exitCode && 1;
  else if (error instanceof CommandRefused || error instanceof ConfigError) process.stderr.write(`${error.message}\n`);
  else process.stderr.write(`Failed: ${error instanceof Error ? error.message : String(error)}\n`);
}
