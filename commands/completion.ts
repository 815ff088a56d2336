import { join } from "node:path";
import { Argument, type Command } from "commander";
import type { Terminal } from "./run-command.ts";

/**
 * Shell completion. The script is made from the commands and has all words in it, so completing starts no process. It also
 * defines the command `serpmill-admin`, because the commands have no short name of their own.
 */

const name = "serpmill-admin";
const shells = ["bash", "zsh", "fish"] as const;

export function addCompletionCommand(program: Command, terminal: Terminal): void {
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
  const choices = [...command.registeredArguments, ...command.options].flatMap(({ argChoices }) => argChoices ?? []);
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
