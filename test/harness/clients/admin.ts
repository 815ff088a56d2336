import type { Command } from "commander";
import { expect } from "vitest";
import { createProgram, runAdmin } from "../../../commands/run-admin.ts";
import type { Terminal } from "../../../commands/run-command.ts";

export interface CommandResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/**
 * Runs one of the operator's commands in this process, with these settings alone. It takes a tenth of a child's time.
 * @param own what its terminal is or does; by default stdout is a pipe, and stdin is empty.
 */
export async function runAdminHere(
  args: readonly string[],
  environment: Record<string, string>,
  own: Partial<Terminal> = {},
): Promise<CommandResult> {
  const written = { stdout: "", stderr: "" };
  const terminal: Terminal = {
    environment,
    stdout: (text) => void (written.stdout += text),
    writeLine: async (line) => {
      written.stdout += line;
      return true;
    },
    stderr: (text) => void (written.stderr += text),
    readLine: () => Promise.resolve(""),
    exitCode: 0,
    ...own,
  };
  await runAdmin(args, terminal);
  return { ...written, exitCode: terminal.exitCode };
}

/** All commands with their words, such as `org create`. */
export function allCommands(): { words: string[]; command: Command }[] {
  const ignore = () => undefined;
  const writing = { stdout: ignore, stderr: ignore, writeLine: async () => true };
  return leavesOf(createProgram({ environment: {}, ...writing, readLine: async () => "", exitCode: 0 }), []);
}

function leavesOf(command: Command, words: string[]): { words: string[]; command: Command }[] {
  if (command.commands.length === 0) return [{ words, command }];
  return command.commands.flatMap((child) => leavesOf(child, [...words, child.name()]));
}

/** The one line of JSON on stdout. */
export function readLine(stdout: string): unknown {
  expect(stdout).toMatch(/^[^\n]+\n$/);
  return JSON.parse(stdout);
}
