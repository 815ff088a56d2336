import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { codeLoading } from "./code-loading.ts";

const runMsMax = 120_000; // Only a program that hangs runs this long; a busy machine needs less.

const root = fileURLToPath(new URL("../../../", import.meta.url));

export interface Ended {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Runs one of our programs to its end, in the checkout, with only this environment. */
export function run(program: string, args: readonly string[], environment: Record<string, string>): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const options = { cwd: root, env: { ...codeLoading, ...environment }, timeout: runMsMax };
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : error.code;
      if (typeof exitCode === "number") resolve({ exitCode, stdout, stderr });
      else reject(new Error(`${program} ${args.join(" ")} did not end by itself:\n${stdout}${stderr}`));
    });
  });
}
