import { hostname, userInfo } from "node:os";
import { pino } from "pino";
import type { Actor } from "../shared/audit/audit.ts";
import { type Config, readConfig } from "../shared/config.ts";
import { type Context, openContext } from "../shared/process/context.ts";
import { describeError } from "../shared/log.ts";
import { explainOutOfReach } from "./out-of-reach.ts";
import type { ShowResult, Terminal } from "./terminal.ts";

/** What a command may use. */
export interface CommandContext extends Pick<Context, "config" | "database" | "redis" | "log" | "metrics"> {
  /** Writes a sentence to stderr. */
  warn: (sentence: string) => void;
  /** The operator, for the audit trail. Each command that changes or shows something of an organization records it. */
  actor: Actor;
}

/** What is special about the result of a command. */
export interface ResultOptions<Result> {
  /** The exit code that the result means, although the command itself ran; by default 0. */
  exitCode?: (result: Result) => number;
  /** The text for a terminal with this many columns; by default tables. */
  toText?: (result: Result, columns: number) => string;
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

export function openRunCommand(terminal: Terminal, show: ShowResult): RunCommand {
  return async (command, { exitCode, toText, toData } = {}) => {
    // Only errors are logged, and on stderr, so that stdout has nothing but the result.
    const log = pino({ level: "error", serializers: { err: describeError } }, { write: terminal.stderr });
    const config = readConfig(terminal.environment);
    const context = openContext({ config, name: "admin", databaseSizeMax: 1, log });
    try {
      const result = await command({
        ...context,
        warn: (sentence) => terminal.stderr(`${sentence}\n`),
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
