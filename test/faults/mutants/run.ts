import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
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
/** How a command ends that finds a broken promise. */
const caught = "exit code 1";
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

/**
 * Plants each mutant in a copy of the checkout and runs the command that must catch it there, several at a time.
 * @returns a row for each, in the order of the list.
 */
export async function runMutants(options: { only?: string | undefined; atOnce: number; say: Say }): Promise<Row[]> {
  const { only, atOnce, say } = options;
  const chosen = mutants.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0)
    throw new Error(`There is no mutant ${only}. Known: ${mutants.map((m) => m.name).join(", ")}`);
  const files = productFiles();
  const rows = new Map<Mutant, Row>();
  // Half of the runs take the fault commands and half the test files, which wait more. So the load stays even.
  const waiting = chosen.toSorted((one, other) => Number(isTestFile(one)) - Number(isTestFile(other)));
  const work = async (copy: string, number: number) => {
    const next = () => (number % 2 === 0 ? waiting.shift() : waiting.pop());
    for (let mutant = next(); mutant; mutant = next()) {
      const changed = applyMutant(files, mutant);
      for (const [path, text] of changed) writeFileSync(join(copy, path), text);
      let ended = await run(mutant.caughtBy, copy);
      if (ended.ending !== caught) ended = await run(mutant.caughtBy, copy); // Random faults may miss a bug once.
      for (const path of changed.keys()) writeFileSync(join(copy, path), files.get(path) ?? "");
      const { ending, complaint, tookSeconds } = ended;
      const held = ending === caught;
      const seen = `${tookSeconds} s: ${held ? complaint : `not caught, ${ending}`}`;
      rows.set(mutant, { what: `${mutant.name}: ${mutant.what}`, promised: "caught", seen, held });
      say(`${rows.size} of ${chosen.length}: ${held ? "caught" : "NOT CAUGHT"}: ${mutant.name}: ${seen}`);
    }
  };
  const copies = Array.from({ length: Math.min(atOnce, chosen.length) }, (_, number) =>
    withCopy((copy) => work(copy, number)),
  );
  await Promise.all(copies);
  return chosen.flatMap((mutant) => rows.get(mutant) ?? []);
}

const isTestFile = ({ caughtBy: [program] }: Mutant) => program === "vitest";

interface Ended {
  /** As in "exit code 1". */
  ending: string;
  /** The first line of the output that reports a broken promise. */
  complaint: string;
  tookSeconds: number;
}

/** Copies the checkout. What a mutant leaves as it was is compiled once for all that are planted in the copy. */
async function withCopy(use: (path: string) => Promise<void>): Promise<void> {
  const copy = await GuardedFolder.create("serpmill-mutants-");
  try {
    for (const part of copied) cpSync(join(root, part), join(copy.path, part), { recursive: true });
    linkPackages(join(root, "node_modules"), join(copy.path, "node_modules"));
    // Tests kill their processes, which then keep nothing compiled.
    await run(["node", "--import", "./api/app.ts", "--import", "./worker/take-jobs.ts", "--eval", ""], copy.path);
    await use(copy.path);
  } finally {
    copy.remove();
  }
}

/** Links each package, and no cache: runs at the same time would overwrite each other's, and the checkout's failed tests. */
function linkPackages(from: string, to: string): void {
  mkdirSync(to);
  for (const name of readdirSync(from))
    if (!name.startsWith(".") || name === ".bin") symlinkSync(join(from, name), join(to, name));
}

async function run([program = "", ...args]: readonly string[], cwd: string): Promise<Ended> {
  const startedAtMs = performance.now();
  const path = `${join(cwd, "node_modules", ".bin")}:${process.env.PATH ?? ""}`;
  const child = await startGuardedProcess(program, args, {
    cwd,
    env: { ...process.env, PATH: path, NODE_COMPILE_CACHE: join(cwd, "node_modules/.cache/compiled") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const late = setTimeout(() => void child.stop(), runMsMax);
  const { stdout, stderr } = child.process;
  // The fault commands name what broke on stderr, and repeat it in a table.
  const output = await Promise.all([stderr, stdout].flatMap((stream) => (stream ? textOf(stream) : [])));
  const ending = await child.exited;
  clearTimeout(late);
  const tookSeconds = Math.round((performance.now() - startedAtMs) / 1_000);
  return { ending, complaint: firstComplaint(output.join("\n")), tookSeconds };
}

const complaint = /BROKEN: (.*)|\| NO |AssertionError: (.*)|(Property failed.*)|FAIL (.*)/;

function firstComplaint(output: string): string {
  const lines = stripVTControlCharacters(output).split("\n");
  const line = lines.find((candidate) => complaint.test(candidate)) ?? "no line of its output says why";
  return (complaint.exec(line)?.slice(1).find(Boolean) ?? line).trim().slice(0, 160);
}
