import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { startGuardedProcess } from "../../../local/guarded-process.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import type { Row, Say } from "../report.ts";
import { mutants } from "./all.ts";
import { applyMutant } from "./apply.ts";
import type { Mutant } from "./mutant.ts";
import { productFiles } from "./symbols.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const runMsMax = 900_000;
const copied = [
  "api",
  "worker",
  "commands",
  "local",
  "shared",
  "test",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
];

/** Applies each mutant to a copy of the checkout and runs the command that must catch it there. @returns a row for each. */
export async function runMutants(options: { only?: string | undefined; say: Say }): Promise<Row[]> {
  const { only, say } = options;
  const chosen = mutants.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0)
    throw new Error(`There is no mutant ${only}. Known: ${mutants.map((m) => m.name).join(", ")}`);
  const rows: Row[] = [];
  for (const mutant of chosen) {
    say(`${mutant.name}: ${mutant.caughtBy.join(" ")}`);
    const startedAtMs = performance.now();
    const { ending, complaint } = await runOn(mutant);
    const tookSeconds = Math.round((performance.now() - startedAtMs) / 1_000);
    const isCaught = ending === "exit code 1";
    const seen = `${tookSeconds} s: ${isCaught ? complaint : `not caught, ${ending}`}`;
    say(`  ${seen}`);
    rows.push({ what: `${mutant.name}: ${mutant.what}`, promised: "caught", seen, held: isCaught });
  }
  return rows;
}

interface Ended {
  /** As in "exit code 1". */
  ending: string;
  /** The first line of the output that reports a broken promise. */
  complaint: string;
}

async function runOn(mutant: Mutant): Promise<Ended> {
  const changed = applyMutant(productFiles(), mutant);
  const copy = await GuardedFolder.create("serpmill-mutant-");
  try {
    for (const part of copied) cpSync(join(root, part), join(copy.path, part), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy.path, "node_modules"));
    for (const [path, text] of changed) writeFileSync(join(copy.path, path), text);
    return await run(mutant.caughtBy, copy.path);
  } finally {
    copy.remove();
  }
}

async function run([program = "", ...args]: readonly string[], cwd: string): Promise<Ended> {
  const path = `${join(cwd, "node_modules", ".bin")}:${process.env.PATH ?? ""}`;
  const child = await startGuardedProcess(program, args, {
    cwd,
    env: { ...process.env, PATH: path },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const late = setTimeout(() => void child.stop(), runMsMax);
  const { stdout, stderr } = child.process;
  const output = await Promise.all([stdout, stderr].flatMap((stream) => (stream ? textOf(stream) : [])));
  const ending = await child.exited;
  clearTimeout(late);
  return { ending, complaint: firstComplaint(output.join("\n")) };
}

const complaint = /BROKEN: (.*)|\| NO |AssertionError: (.*)|(Property failed.*)|FAIL (.*)/;

function firstComplaint(output: string): string {
  const lines = stripVTControlCharacters(output).split("\n");
  const line = lines.find((candidate) => complaint.test(candidate)) ?? "no line of its output says why";
  return (complaint.exec(line)?.slice(1).find(Boolean) ?? line).trim().slice(0, 160);
}
