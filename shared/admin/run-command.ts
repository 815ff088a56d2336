import { hostname, userInfo } from "node:os";
import { pino } from "pino";
import type { Actor } from "../audit/audit.ts";
import { type Config, readConfig } from "../config.ts";
import { type Context, openContext } from "../context.ts";
import { describeError } from "../log.ts";
import type { Terminal } from "./terminal.ts";

/** What a command may use. */
export interface CommandContext extends Pick<Context, "config" | "database" | "redis" | "log" | "metrics"> {
  /** Writes a sentence to stderr. */
  warn: (sentence: string) => void;
  /** The operator, for the audit trail. Each command that changes or shows something of an organization records it. */
  actor: Actor;
}

/**
 * Runs one command with Postgres and Redis open, prints its result, and closes both.
 * @param isFailure whether the result means exit code 1, although the command itself ran.
 * @param format the text to print; by default one line of JSON.
 */
export type RunCommand = <Result extends object>(
  command: (context: CommandContext) => Promise<Result>,
  isFailure?: (result: Result) => boolean,
  format?: (result: Result) => string,
) => Promise<void>;

export function openRunCommand(terminal: Terminal): RunCommand {
  return async (command, isFailure, format = toLine) => {
    // Only errors are logged, and on stderr, so that stdout stays one line of JSON.
    const log = pino({ level: "error", serializers: { err: describeError } }, { write: terminal.stderr });
    const config = readConfig(terminal.environment);
    const context = openContext({ config, name: "admin", databaseSizeMax: 1, log });
    try {
      const result = await command({
        ...context,
        warn: (sentence) => terminal.stderr(`${sentence}\n`),
        actor: operatorOf(config),
      });
      terminal.stdout(format(result));
      if (isFailure?.(result)) terminal.exitCode = 1;
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

const toLine = (result: object) => `${JSON.stringify(result)}\n`;
