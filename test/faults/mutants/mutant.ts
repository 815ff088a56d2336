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
  mutate: Mutation;
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
export type SymbolName =
  | { kind: "code"; name: string }
  | { kind: "sql"; name: string }
  | { kind: "script"; name: string };

/** Changes the text of one symbol. @throws if the anchor is missing or not unique. */
export type Mutation = (text: string, bodyAt: number) => string;

export const inCode = (name: string, mutate: Mutation, calls: readonly string[] = []): Edit => ({
  symbol: { kind: "code", name },
  mutate,
  calls,
});
export const inSql = (name: string, mutate: Mutation): Edit => ({ symbol: { kind: "sql", name }, mutate });
export const inScript = (name: string, mutate: Mutation): Edit => ({ symbol: { kind: "script", name }, mutate });

/** Replaces the only occurrence of the anchor. Whitespace in a string matches any whitespace, so formatting is free. */
export function replace(anchor: string | RegExp, by: string): Mutation {
  return (text) => {
    const [found, ...others] = text.matchAll(patternOf(anchor));
    if (!found) throw new Error(`the anchor is missing: ${String(anchor)}`);
    if (others.length > 0) throw new Error(`the anchor occurs ${others.length + 1} times: ${String(anchor)}`);
    return text.slice(0, found.index) + by + text.slice(found.index + found[0].length);
  };
}

/** Inserts code as the first statement of a function's body. */
export const atStart =
  (code: string): Mutation =>
  (text, bodyAt) =>
    `${text.slice(0, bodyAt)}\n${code}\n${text.slice(bodyAt)}`;

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
