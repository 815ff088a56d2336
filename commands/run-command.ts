import { hostname, userInfo } from "node:os";
import type { Command } from "commander";
import { pino } from "pino";
import type { Actor } from "../shared/audit/audit.ts";
import { type Config, readConfig } from "../shared/config.ts";
import { describeError } from "../shared/log.ts";
import { type Context, openContext } from "../shared/process/context.ts";
import { type FormatResult, formatResult } from "./format-result.ts";
import { inAskedUnit, isInUsd } from "./money.ts";
import { explainOutOfReach } from "./refusals.ts";

/** What the operator's commands read and write: a process has one, and a test has its own. */
export interface Terminal {
  /** The settings; undefined for those of the process. */
  environment: NodeJS.ProcessEnv | undefined;
  stdout: (text: string) => void;
  /** Writes one of many lines to stdout. Resolves once its reader has taken it; to false if the reader has left. */
  writeLine: (line: string) => Promise<boolean>;
  stderr: (text: string) => void;
  /** How many characters a line of stdout has; absent if stdout is a pipe or a file. */
  columns?: number | undefined;
  /** Asks the person at the terminal; absent if there is none. */
  ask?: ((question: string) => Promise<string>) | undefined;
  /** Reads stdin up to its first line break, or its end. */
  readLine: () => Promise<string>;
  /** One of {@link exitCodes}, or 0. */
  exitCode: number;
}

/** A busy server may take seconds to accept a connection, and one query of a command may wait for another. */
export const connectTimeoutMs = 10_000;

/** How a command ended, for scripts. 0 means that it did what it was asked to. */
export const exitCodes = {
  /** It was refused, it failed, or it found something wrong. Its message or its result says what. */
  refused: 1,
  /** An unknown command, a wrong argument, or a wrong setting. Repeated as it is, it fails again. */
  wrongUsage: 2,
  /** Postgres or Redis did not answer. Repeated later, it may succeed. */
  outOfReach: 3,
  /** An invariant of the ledger is broken. */
  booksBroken: 4,
} as const;

/**
 * Shows the result of a command: on a terminal as text, and to a pipe, to a file, or with `--json`, as one line of JSON.
 * @param toText the text for a terminal, with what formats it for its width; by default tables.
 */
export type ShowResult = <Result extends object>(
  result: Result,
  toText?: (result: Result, format: FormatResult) => string,
) => void;

/** @param program has `--json` and `--usd` once it has parsed the arguments. */
export function openShowResult(terminal: Terminal, program: Command): ShowResult {
  return (result, toText = (whole, format) => format(whole)) => {
    const { columns } = terminal;
    const asText = columns !== undefined && program.opts<{ json?: true }>().json !== true;
    const format = (shown: object) => formatResult(shown, columns ?? 0, isInUsd(program));
    terminal.stdout(asText ? toText(result, format) : `${JSON.stringify(result)}\n`);
  };
}

/** What a command may use. */
export interface CommandContext extends Pick<Context, "config" | "database" | "redis" | "log" | "metrics"> {
  /** Writes a sentence to stderr. */
  warn: (sentence: string) => void;
  /** The operator, for the audit trail. Each command that changes or shows something of an organization records it. */
  actor: Actor;
}

/** What is special about the result of a command. */
interface ResultOptions<Result> {
  /** The exit code that the result means, although the command itself ran; by default 0. */
  exitCode?: (result: Result) => number;
  /** The text for a terminal; by default tables. */
  toText?: (result: Result, format: FormatResult) => string;
  /** What is printed in any case, for a command whose output is no result but data of another form. */
  toData?: ((result: Result) => string) | undefined;
}

/**
 * Runs one command with Postgres and Redis open, shows its result, and closes both.
 * @throws {OutOfReach} if one of them does not answer and the command needs it.
 */
export type RunCommand = <Result extends object>(
  command: (context: CommandContext) => Promise<Result>,
  options?: ResultOptions<Result>,
) => Promise<void>;

export function openRunCommand(terminal: Terminal, show: ShowResult, program: Command): RunCommand {
  return async (command, { exitCode, toText, toData } = {}) => {
    // Only errors are logged, and on stderr, so that stdout has nothing but the result.
    const log = pino({ level: "error", serializers: { err: describeError } }, { write: terminal.stderr });
    const config = readConfig(terminal.environment);
    const context = openContext({ config, name: "admin", databaseSizeMax: 1, connectTimeoutMs, log });
    try {
      const result = await command({
        ...context,
        warn: (sentence) => terminal.stderr(`${inAskedUnit(program, sentence)}\n`),
        actor: operatorOf(config),
      });
      if (toData) terminal.stdout(toData(result));
      else show(result, toText);
      terminal.exitCode = exitCode?.(result) ?? 0;
    } catch (error) {
      throw explainOutOfReach(error, config) ?? error;
    } finally {
      await context.shutdown.run(log);
    }
  };
}

/** The operator by OPERATOR_NAME, or by the user of the operating system. */
function operatorOf({ OPERATOR_NAME: name }: Pick<Config, "OPERATOR_NAME">): Actor {
  return { kind: "operator", name: name ?? systemUser(), host: hostname() };
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container the user may have no entry.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
