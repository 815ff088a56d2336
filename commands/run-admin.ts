import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Argument, Command, CommanderError } from "commander";
import { z } from "zod";
import { ConfigError } from "../shared/config.ts";
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
import { isSentence, OutOfReach } from "./refusals.ts";
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
  addCompletionCommand(program, terminal);
  return program;
}

/**
 * Shell completion. The script is made from the commands and has all words in it, so completing starts no process. It also
 * defines the command `serpmill-admin`, because the commands have no short name of their own.
 */

const name = "serpmill-admin";
const shells = ["bash", "zsh", "fish"] as const;

function addCompletionCommand(program: Command, terminal: Terminal): void {
  program
    .command("completion")
    .summary(`print a shell script that defines the command ${name} with completion`)
    .description(`Print a shell script that defines the command ${name}, which runs this program, with completion.`)
    .addArgument(new Argument("<shell>", "your shell").choices(shells))
    .addHelpText(
      "after",
      '\nbash, zsh: eval "$(npm run --silent admin -- completion bash)"\nfish: npm run --silent admin -- completion fish | source\nAdd the line to the startup file of your shell.',
    )
    .action((shell: (typeof shells)[number]) => {
      const candidates = candidatesOf(program, "");
      terminal.stdout(shell === "fish" ? fishScript(candidates) : bashScript(candidates));
    });
}

/** What may follow the words of a path: the commands of a group, or the choices and options of a command. */
interface Candidates {
  path: string;
  /** Arguments may follow the words of a command. */
  isCommand: boolean;
  words: string;
}

function candidatesOf(command: Command, path: string): Candidates[] {
  const isCommand = command.commands.length === 0;
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const options = command.options.flatMap(({ long }) => long ?? []);
  const names = command.commands.map((child) => child.name());
  const words = (isCommand ? [...choices, "--help", "--json", "--usd", ...options] : names).join(" ");
  return [
    { path, isCommand, words },
    ...command.commands.flatMap((child) => candidatesOf(child, `${path} ${child.name()}`)),
  ];
}

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
const program = [process.execPath, join(import.meta.dirname, "main.ts")].map(quoted).join(" ");

/** For bash, and for zsh, which has an adapter for completions of bash. */
const bashScript = (candidates: readonly Candidates[]) => `${name}() { ${program} "$@"; }
_serpmill_admin() {
  local before="" candidates="" at
  for ((at = 1; at < COMP_CWORD; at++)); do
    [[ \${COMP_WORDS[at]} == -* ]] || before="$before \${COMP_WORDS[at]}"
  done
  case "$before" in
${candidates.map(({ path, isCommand, words }) => `    "${path}"${isCommand ? `|"${path} "*` : ""}) candidates="${words}" ;;\n`).join("")}  esac
  COMPREPLY=($(compgen -W "$candidates" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
if [[ -n \${ZSH_VERSION:-} ]]; then
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
  autoload -Uz bashcompinit && bashcompinit
fi
complete -o default -F _serpmill_admin ${name}
`;

const fishScript = (
  candidates: readonly Candidates[],
) => `function ${name}; ${program.replaceAll(String.raw`'\''`, String.raw`\'`)} $argv; end
function __serpmill_admin
  set -l before ' '(string join ' ' -- (string match --invert -- '-*' (commandline --tokenize --cut-at-cursor --current-process)[2..]))
  switch (string trim --right -- $before)
${candidates
  .map(
    ({ path, isCommand, words }) =>
      `    case '${path}'${isCommand ? ` '${path} *'` : ""}\n      printf '%s\\n' ${words}\n`,
  )
  .join("")}  end
end
complete --command ${name} --no-files --arguments '(__serpmill_admin)'
`;
