/** A known bug, planted in a copy of the code. The tests of the promise that it breaks must fail. */
export interface Mutant {
  name: string;
  /** The bug, in one sentence. */
  what: string;
  /** The command that must exit with 1 on the mutated copy. */
  caughtBy: readonly string[];
  edits: readonly Edit[];
}

/** One change inside one symbol. Files may be renamed or moved; a renamed symbol fails the test of the mutants. */
export interface Edit {
  symbol: SymbolName;
  /** @throws if the anchor is missing or not unique. */
  mutate: (text: string, bodyAt: number) => string;
  /** Exported names that the new code calls. They are imported unless the file imports them already. */
  calls?: readonly string[];
}

/**
 * Names a part of the product, whichever file it is in.
 *
 * - `code`: a function, a top-level constant, or `Class.method`, in TypeScript
 * - `sql`: a function, table or index in the migrations; the latest definition counts
 * - `script`: a Lua script, by its file name
 */
export interface SymbolName {
  kind: "code" | "sql" | "script";
  name: string;
}

// Each replaces the only occurrence of the anchor. Whitespace in a string matches any whitespace, so formatting is free.
const replacing =
  (kind: SymbolName["kind"]) =>
  (name: string, anchor: string | RegExp, by: string, calls: readonly string[] = []): Edit => ({
    symbol: { kind, name },
    mutate: (text) => {
      const [found, ...others] = text.matchAll(patternOf(anchor));
      if (!found) throw new Error(`the anchor is missing: ${String(anchor)}`);
      if (others.length > 0) throw new Error(`the anchor occurs ${others.length + 1} times: ${String(anchor)}`);
      return text.slice(0, found.index) + by + text.slice(found.index + found[0].length);
    },
    calls,
  });
export const inCode = replacing("code");
export const inSql = replacing("sql");
export const inScript = replacing("script");

/** Inserts code as the first statement of a function's body. */
export const atStartOf = (name: string, code: string): Edit => ({
  symbol: { kind: "code", name },
  mutate: (text, bodyAt) => `${text.slice(0, bodyAt)}\n${code}\n${text.slice(bodyAt)}`,
});

function patternOf(anchor: string | RegExp): RegExp {
  if (anchor instanceof RegExp) return new RegExp(anchor, "gs");
  const escaped = anchor.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(escaped.join("\\s+"), "g");
}

/** The command of a test file. */
export const testFile = (path: string): readonly string[] => ["vitest", "run", path, "--bail", "1"];
/** The command of `npm run faults`. */
export const faults = (...args: readonly string[]): readonly string[] => ["node", "test/faults/main.ts", ...args];
export const moneyModel = faults("money", "--runs", "1500", "--no-shrink");

/** Mutants that one command must catch: by their names, the bug in a sentence and its edits. */
export const caughtBy = (
  command: readonly string[],
  bugs: Readonly<Record<string, readonly [what: string, ...edits: Edit[]]>>,
): Mutant[] => Object.entries(bugs).map(([name, [what, ...edits]]) => ({ name, what, caughtBy: command, edits }));
