import type { Command } from "commander";
import { formatTable } from "../harness/format-table.ts";

/** One promise and whether it held. */
export interface Row {
  /** What was tried. */
  what: string;
  /** What was promised, in words or figures. */
  promised: string;
  /** What was seen. */
  seen: string;
  held: boolean;
}

/** The promises that were broken. */
export const notHeld = <T extends { held: boolean }>(rows: readonly T[]): T[] => rows.filter(({ held }) => !held);

/** Prints a line of progress. */
export type Say = (line: string) => void;

export const say: Say = (line) => void process.stderr.write(`${line}\n`);

// A longer text makes every line of the table too wide for a terminal. All of it was printed during the run.
const lengthMax = 240;

/** Prints the rows as a table that is also Markdown. The exit code is 1 if a promise did not hold. */
export function conclude(rows: readonly Row[]): void {
  const shorten = (text: string) => (text.length > lengthMax ? `${text.slice(0, lengthMax)} …` : text);
  const cells = rows.map(({ what, promised, seen, held }) => [what, promised, shorten(seen), held ? "yes" : "NO"]);
  const broken = notHeld(rows);
  process.stdout.write(`${formatTable(["what was tried", "promised", "seen", "held"], cells)}\n`);
  // Once more behind the table, and whole: the end of a long log is what is read first.
  for (const { what, promised, seen } of broken) process.stdout.write(`NOT HELD: ${what}: ${promised}: ${seen}\n`);
  const end = `${broken.length} of ${rows.length} promises did not hold.`;
  process.stdout.write(`${broken.length === 0 ? "Every promise held." : end}\n`);
  process.exitCode = broken.length === 0 ? 0 : 1;
}

/** Runs a command. If it fails itself, or knows no such name, the exit code is 2 and not 1: that says nothing about the promises. */
export async function runCommand(program: Command): Promise<void> {
  for (const command of [program, ...program.commands])
    command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
  try {
    await program.parseAsync();
  } catch (error) {
    say(String(error instanceof Error ? error.stack : error));
    process.exitCode = 2;
  }
}
