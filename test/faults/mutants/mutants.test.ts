import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { mutants } from "./all.ts";
import { applyMutant } from "./apply.ts";
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
