import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const question = "import sys; print(sys.executable if sys.version_info >= (3, 10) else '')";
const { stdout } = spawnSync("python3", ["-c", question], { encoding: "utf8" });

/** The Python that tests start, 3.10 or newer; "" without one. Then the tests that need it are skipped; nothing is installed. */
export const pythonPath = (stdout ?? "").trim();

/** The suffix of a skipped title; empty if Python is there. */
export const withoutPython = pythonPath === "" ? " (skipped: there is no Python 3.10 or newer)" : "";

const runMsMax = 120_000;
const source = fileURLToPath(new URL("../../../clients/python/src", import.meta.url));

/** Runs a program with the Python client, and kills it in the end if it does not end by itself. */
export const runPython = (args: string[], environment: Record<string, string> = {}) =>
  promisify(execFile)(pythonPath, ["-B", "-c", ...args], {
    timeout: runMsMax,
    env: { ...process.env, PYTHONPATH: source, ...environment },
  });
