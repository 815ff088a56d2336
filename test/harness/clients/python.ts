import { spawnSync } from "node:child_process";

const question = "import sys; print(sys.executable if sys.version_info >= (3, 10) else '')";
const { stdout } = spawnSync("python3", ["-c", question], { encoding: "utf8" });

/** The Python that tests start, 3.10 or newer; "" without one. Then the tests that need it are skipped; nothing is installed. */
export const pythonPath = (stdout ?? "").trim();

/** The suffix of a skipped title; empty if Python is there. */
export const withoutPython = pythonPath === "" ? " (skipped: there is no Python 3.10 or newer)" : "";
