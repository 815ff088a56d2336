import { createInterface } from "node:readline/promises";
import { runAdmin } from "./run-admin.ts";
import type { Terminal } from "./run-command.ts";

// The reader of a pipe, such as head, may have enough before the end.
for (const output of [process.stdout, process.stderr])
  output.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") return;
    process.stderr.write(`The output cannot be written: ${message}\n`);
    process.exit(1);
  });

async function ask(question: string): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await prompt.question(question);
  } finally {
    prompt.close();
  }
}

async function readLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) return line;
    return "";
  } finally {
    lines.close();
  }
}

/** A terminal may not know its width. */
const usualColumns = 80;

const terminal: Terminal = {
  environment: undefined,
  stdout: (text) => void process.stdout.write(text),
  writeLine: (line) =>
    new Promise((resolve) => {
      process.stdout.write(line, (error) => resolve(!error));
    }),
  stderr: (text) => void process.stderr.write(text),
  columns: process.stdout.isTTY ? process.stdout.columns || usualColumns : undefined,
  ask: process.stdin.isTTY ? ask : undefined,
  readLine,
  exitCode: 0,
};
await runAdmin(process.argv.slice(2), terminal);
process.exitCode = terminal.exitCode;
