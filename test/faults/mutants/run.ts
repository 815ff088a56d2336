import { execFileSync, spawn } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import type { Row, Say } from "../report.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const runMsMax = 900_000;
const copied = ["api", "worker", "shared", "test", "package.json", "tsconfig.json", "vitest.config.ts"];

/** A defect that somebody could have made, as a patch, and what has to find it. */
export interface Mutant {
  name: string;
  /** In a sentence. */
  what: string;
  /** The command that has to fail with the patch applied; it exits with 1 where a promise did not hold. */
  caughtBy: string;
  patch: string;
}

/** All patches of this folder. Each begins with two lines: what is wrong, and what catches it. */
export function mutants(): Mutant[] {
  return globSync("*.patch", { cwd: import.meta.dirname })
    .toSorted()
    .map((file) => {
      const patch = join(import.meta.dirname, file);
      const [what = "", caughtBy = ""] = readFileSync(patch, "utf8").split("\n");
      return { name: basename(file, ".patch"), what, caughtBy: caughtBy.replace(/^Caught by: /, ""), patch };
    });
}

/** Applies each patch to a copy of the checkout, and lets it be searched for there. @returns a row for each bug. */
export async function runMutants(options: { only?: string | undefined; say: Say }): Promise<Row[]> {
  const { only, say } = options;
  const rows: Row[] = [];
  for (const bug of mutants().filter(({ name }) => only === undefined || name === only)) {
    say(`${bug.name}: ${bug.caughtBy}`);
    const startedAtMs = performance.now();
    const { exitCode, told } = await find(bug);
    const tookSeconds = Math.round((performance.now() - startedAtMs) / 1_000);
    const found = exitCode === 1 ? told : `exit code ${exitCode}`;
    say(`  after ${tookSeconds} s: ${found}`);
    rows.push({ what: bug.what, promised: "caught", seen: `${tookSeconds} s: ${found}`, held: exitCode === 1 });
  }
  return rows;
}

async function find({ patch, caughtBy }: Mutant): Promise<{ exitCode: number | null; told: string }> {
  const copy = mkdtempSync(join(tmpdir(), "serpmill-mutant-"));
  try {
    for (const part of copied) cpSync(join(root, part), join(copy, part), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    execFileSync("git", ["apply", patch], { cwd: copy });
    return await run(caughtBy, copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function run(command: string, cwd: string): Promise<{ exitCode: number | null; told: string }> {
  const [program = "", ...args] = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(
    ([, quoted, plain]) => quoted ?? plain ?? "",
  );
  const path = `${join(cwd, "node_modules", ".bin")}:${process.env.PATH ?? ""}`;
  const child = spawn(program, args, { cwd, env: { ...process.env, PATH: path }, timeout: runMsMax });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode) => resolve({ exitCode, told: firstComplaint(said) }));
  });
}

const complaint = /BROKEN: (.*)|\| NO |AssertionError: (.*)|(Property failed.*)|FAIL (.*)/;

function firstComplaint(said: string): string {
  const line =
    stripVTControlCharacters(said)
      .split("\n")
      .find((candidate) => complaint.test(candidate)) ?? "it failed without a word";
  return (complaint.exec(line)?.slice(1).find(Boolean) ?? line).trim().slice(0, 160);
}
