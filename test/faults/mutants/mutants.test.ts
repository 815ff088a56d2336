import { execFile } from "node:child_process";
import { cpSync, existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { mutants } from "./all.ts";
import { applyMutant } from "./apply.ts";
import { atStart, inCode, inScript, inSql, type Mutant, replace } from "./mutant.ts";
import { productFiles } from "./symbols.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const files = productFiles();

describe("every mutant still applies to the code", () => {
  test.each(mutants)("$name", ({ what, caughtBy, ...mutant }) => {
    expect(what).toMatch(/^[A-Z].*\.$/);
    const changed = applyMutant(files, { what, caughtBy, ...mutant });
    expect(changed.size).toBeGreaterThan(0);
    for (const [path, text] of changed) expect(text).not.toBe(files.get(path));
    const [program, ...args] = caughtBy;
    expect(["vitest", "node"]).toContain(program);
    expect(existsSync(join(root, args.find((argument) => argument.endsWith(".ts")) ?? "nowhere"))).toBe(true);
  });
});

test("every mutant compiles, so that it is caught for what it does", { timeout: 180_000 }, async () => {
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

describe("a mutant that no longer fits the code says why", () => {
  const code = new Map([
    [
      "api/one.ts",
      "export function twice(n: number) {\n  return n * 2;\n}\nclass Cart {\n  total() { return 1; }\n}\n",
    ],
    ["worker/two.ts", "function same() {}\n"],
    ["shared/three.ts", "function same() {}\n"],
    ["shared/a.sql", "create function f() returns int as $$ begin; return 1; end $$;\n"],
    ["shared/b.sql", "create or replace function f() returns int as $$ begin; return 2; end $$;\n"],
  ]);
  const mutant = (...edits: Mutant["edits"]): Mutant => ({ name: "m", what: "", caughtBy: [], edits });

  test("a symbol is found in any file, and only that file is edited", () => {
    const edits = [inCode("twice", replace("n * 2", "n * 3")), inCode("Cart.total", atStart("return 0;"))];
    const changed = applyMutant(code, mutant(...edits));
    expect([...changed.keys()]).toEqual(["api/one.ts"]);
    expect(changed.get("api/one.ts")).toContain("return n * 3;");
    expect(changed.get("api/one.ts")).toMatch(/total\(\) \{\nreturn 0;\n return 1;/);
  });

  test("the latest definition of an SQL function counts", () => {
    expect([...applyMutant(code, mutant(inSql("f", replace("return 2", "return 3")))).keys()]).toEqual([
      "shared/b.sql",
    ]);
  });

  test.each([
    ["a symbol that is gone", inCode("thrice", atStart("")), /code thrice: not found/],
    ["a name that two files declare", inCode("same", atStart("")), /ambiguous, found in worker.*, shared/],
    ["an anchor that is gone", inCode("twice", replace("n + 2", "")), /anchor is missing: n \+ 2/],
    ["an anchor that is not unique", inCode("twice", replace("n", "")), /occurs \d times/],
    ["an edit without effect", inCode("twice", replace("n * 2", "n * 2")), /changes nothing/],
    ["a script that is gone", inScript("none.lua", replace("a", "b")), /script none.lua: not found/],
    [
      "a call of what no file exports",
      inCode("twice", replace("2", "3"), ["missing"]),
      /missing is exported by no file/,
    ],
  ])("%s", (_, edit, message) => {
    expect(() => applyMutant(code, mutant(edit))).toThrow(message);
  });
});
