import { formatResult } from "./format-result.ts";

/** What the operator's commands read and write: a process has one, and a test has its own. */
export interface Terminal {
  /** The settings; undefined for those of the process. */
  environment: NodeJS.ProcessEnv | undefined;
  stdout: (text: string) => void;
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
 * @param toText the text for a terminal of this width; by default tables.
 */
export type ShowResult = <Result extends object>(
  result: Result,
  toText?: (result: Result, columns: number) => string,
) => void;

/** @param isJson whether `--json` was given. */
export function openShowResult(terminal: Terminal, isJson: () => boolean): ShowResult {
  return (result, toText = formatResult) => {
    const { columns } = terminal;
    const asText = columns !== undefined && !isJson();
    terminal.stdout(asText ? toText(result, columns) : `${JSON.stringify(result)}\n`);
  };
}
