import { formatResult } from "./format-result.ts";
import type { Terminal } from "./terminal.ts";

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
