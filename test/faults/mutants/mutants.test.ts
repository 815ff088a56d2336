import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { mutants } from "./all.ts";
import { applyMutant } from "./apply.ts";
import { atStart, inCode, inScript, inSql, type Mutant, replace } from "./mutant.ts";
import { runMutants } from "./run.ts";
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

test("a mutant in a copy of the code is caught by its test", async () => {
  // One that a unit test catches; `npm run faults -- mutants` plants all of them.
  const rows = await runMutants({ only: "limit-never-falls", atOnce: 1, say: () => undefined });
  expect(rows).toMatchObject([{ held: true }]);
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
