import { join } from "node:path";
import { Argument, type Command } from "commander";
import type { Terminal } from "./terminal.ts";

/**
 * Shell completion. The script is made from the commands and has all words in it, so completing starts no process. It also
 * defines the command `serpmill-admin`, because the commands have no short name of their own.
 */

const name = "serpmill-admin";
const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

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
    .action((shell: Shell) => terminal.stdout(scripts[shell](placesOf(program, ""))));
}

/** What may follow after the words of `path`: commands, or the options of a command. */
interface Place {
  path: string;
  isCommand: boolean;
  follows: string[];
}

function placesOf(command: Command, path: string): Place[] {
  const isCommand = command.commands.length === 0;
  const options = ["--help", "--json", ...command.options.flatMap(({ long }) => long ?? [])];
  const follows = isCommand ? [...new Set(options)] : command.commands.map((child) => child.name());
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const own = { path, isCommand, follows: [...choices, ...follows] };
  return [own, ...command.commands.flatMap((child) => placesOf(child, `${path} ${child.name()}`))];
}

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
const program = [process.execPath, join(import.meta.dirname, "main.ts")].map(quoted).join(" ");

/** The branches of a `case` over the words before the one that is completed. Arguments may follow a command. */
const casesOf = (places: readonly Place[]) =>
  places
    .map(({ path, isCommand, follows }) => {
      const pattern = isCommand ? `"${path}"|"${path} "*` : `"${path}"`;
      return `    ${pattern}) candidates="${follows.join(" ")}" ;;\n`;
    })
    .join("");

const scripts: Record<Shell, (places: readonly Place[]) => string> = {
  bash: (places) => `${name}() { ${program} "$@"; }
_serpmill_admin() {
  local before="" candidates="" at
  for ((at = 1; at < COMP_CWORD; at++)); do
    [[ \${COMP_WORDS[at]} == -* ]] || before="$before \${COMP_WORDS[at]}"
  done
  case "$before" in
${casesOf(places)}  esac
  COMPREPLY=($(compgen -W "$candidates" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _serpmill_admin ${name}
`,
  zsh: (places) => `${name}() { ${program} "$@"; }
_serpmill_admin() {
  local before="" candidates="" word
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    [[ $word == -* ]] || before="$before $word"
  done
  case "$before" in
${casesOf(places)}  esac
  compadd -- \${=candidates}
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _serpmill_admin ${name}
`,
  fish: (places) => `function ${name}; ${program.replaceAll(String.raw`'\''`, String.raw`\'`)} $argv; end
function __serpmill_admin
  set -l before ' '(string join ' ' -- (string match --invert -- '-*' (commandline --tokenize --cut-at-cursor --current-process)[2..]))
  switch (string trim --right -- $before)
${places
  .map(({ path, isCommand, follows }) => {
    const patterns = isCommand ? `${quoted(path)} ${quoted(`${path} *`)}` : quoted(path);
    return `    case ${patterns}\n      printf '%s\\n' ${follows.join(" ")}\n`;
  })
  .join("")}  end
end
complete --command ${name} --no-files --arguments '(__serpmill_admin)'
`,
};
