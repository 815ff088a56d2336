import { execFile } from "node:child_process";
import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { mutants } from "./all.ts";
import { applyMutant } from "./apply.ts";
import { productFiles } from "./symbols.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const files = productFiles();

test("every mutant compiles, so that it is caught for what it does", async () => {
  const copy = await GuardedFolder.create("serpmill-mutants-");
  try {
    for (const part of ["api", "worker", "commands", "local", "shared", "package.json"])
      cpSync(join(root, part), join(copy.path, part), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy.path, "node_modules"));
    // Each mutated file is beside its original, so that one run of the compiler checks all of them.
    const written = mutants.flatMap((mutant) =>
      [...applyMutant(files, mutant)].flatMap(([path, text]) => {
        if (!path.endsWith(".ts")) return [];
        const mutated = path.replace(/\.ts$/, `.${mutant.name}.ts`);
        writeFileSync(join(copy.path, mutated), text);
        return [mutated];
      }),
    );
    expect(written.length).toBeGreaterThan(5);
    const loose = {
      noUnusedLocals: false,
      noUnusedParameters: false,
      allowUnreachableCode: true,
      noImplicitReturns: false,
    };
    const config = { extends: join(root, "tsconfig.json"), compilerOptions: loose, include: written };
    writeFileSync(join(copy.path, "tsconfig.json"), JSON.stringify(config));
    const compiled = await promisify(execFile)(join(root, "node_modules/.bin/tsc"), ["-p", copy.path], {
      cwd: copy.path,
    }).catch((error: { stdout: string }) => error);
    expect(compiled.stdout).toBe("");
  } finally {
    copy.remove();
  }
});
