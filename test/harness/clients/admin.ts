import { expect } from "vitest";
import { runAdmin } from "../../../shared/admin/run-admin.ts";
import type { Terminal } from "../../../shared/admin/terminal.ts";

export interface CommandResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/**
 * Runs one of the operator's commands in this process, with these settings alone. It takes a tenth of a child's time.
 * @param columns the width of the terminal; without it, stdout is a pipe.
 */
export async function runAdminHere(
  args: readonly string[],
  environment: Record<string, string>,
  columns?: number,
): Promise<CommandResult> {
  const written = { stdout: "", stderr: "" };
  const terminal: Terminal = {
    environment,
    stdout: (text) => void (written.stdout += text),
    stderr: (text) => void (written.stderr += text),
    columns,
    exitCode: 0,
  };
  await runAdmin(args, terminal);
  return { ...written, exitCode: terminal.exitCode };
}

/** The one line of JSON on stdout. */
export function readLine(stdout: string): unknown {
  expect(stdout).toMatch(/^[^\n]+\n$/);
  return JSON.parse(stdout);
}
