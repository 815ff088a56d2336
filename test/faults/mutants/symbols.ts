import { ts } from "@ts-morph/common";
import { sources } from "../../harness/assertions/sources.ts";
import type { SymbolName } from "./mutant.ts";

/** The product's files by path from the root. */
export type Files = ReadonlyMap<string, string>;

/** The range of a symbol in its file. */
export interface SymbolRange {
  path: string;
  start: number;
  end: number;
  /** The offset from `start` behind the opening brace of a function's body; 0 if there is none. */
  bodyAt: number;
  isExported: boolean;
}

export function productFiles(): Files {
  return new Map(sources("{api,worker,commands,shared}/**/*.{ts,lua,sql}").map(({ path, text }) => [path, text]));
}

/**
 * Finds a symbol by its name, in any file. An exported symbol takes precedence.
 * @throws if it is missing or ambiguous.
 */
export function findSymbol(files: Files, { kind, name }: SymbolName): SymbolRange {
  const all = finders[kind](files, name);
  const exported = all.filter(({ isExported }) => isExported);
  const found = exported.length > 0 ? exported : all;
  const [only, ...others] = found;
  if (!only) throw new Error(`${kind} ${name}: not found in api/, worker/ or shared/`);
  if (others.length > 0)
    throw new Error(`${kind} ${name}: ambiguous, found in ${found.map(({ path }) => path).join(", ")}`);
  return only;
}

const finders: Record<SymbolName["kind"], (files: Files, name: string) => SymbolRange[]> = {
  code: (files, name) =>
    [...files].flatMap(([path, text]) => {
      const mayDeclare = path.endsWith(".ts") && text.includes(name.split(".").at(-1) ?? name);
      return mayDeclare ? declarations(path, text, name) : [];
    }),
  sql: (files, name) => {
    const defined = [...files].flatMap(([path, text]) => (path.endsWith(".sql") ? statements(path, text, name) : []));
    return defined.slice(-1); // A later definition replaces an earlier one.
  },
  script: (files, name) =>
    [...files]
      .filter(([path]) => path.endsWith(`/${name}`))
      .map(([path, text]) => ({ path, start: 0, end: text.length, bodyAt: 0, isExported: true })),
};

/** Functions at any depth, methods as `Class.method`, and constants at the top level. */
function declarations(path: string, text: string, name: string): SymbolRange[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: SymbolRange[] = [];
  const visit = (node: ts.Node, className: string): void => {
    if (declaredName(node, className) === name) {
      const start = node.getStart(source);
      const isExported = statementOf(node).getText(source).startsWith("export ");
      found.push({ path, start, end: node.getEnd(), bodyAt: bodyStart(node, source) - start, isExported });
    }
    const within = ts.isClassDeclaration(node) ? `${node.name?.text ?? ""}.` : className;
    ts.forEachChild(node, (child) => visit(child, within));
  };
  visit(source, "");
  return found;
}

function declaredName(node: ts.Node, className: string): string | undefined {
  if (ts.isFunctionDeclaration(node)) return node.body && node.name?.text;
  if (ts.isMethodDeclaration(node)) return className + node.name.getText();
  if (!ts.isVariableDeclaration(node) || !ts.isSourceFile(node.parent.parent.parent)) return undefined;
  return node.name.getText();
}

/** The declaration itself, or the statement around a constant or a method. */
function statementOf(node: ts.Node): ts.Node {
  if (ts.isVariableDeclaration(node)) return node.parent.parent;
  return ts.isMethodDeclaration(node) ? node.parent : node;
}

function bodyStart(node: ts.Node, source: ts.SourceFile): number {
  const hasBody = ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node);
  return hasBody && node.body ? node.body.getStart(source) + 1 : node.getStart(source);
}

/** Statements of a migration that create this function, table, view or index. */
function statements(path: string, text: string, name: string): SymbolRange[] {
  const create = new RegExp(
    `^create (or replace )?(function|table|view|(unique )?index( concurrently)?) ${name}\\b`,
    "gm",
  );
  return [...text.matchAll(create)].map(({ index, 0: head }) => {
    // A function ends with the semicolon after its second pair of dollar signs.
    const bodyEnd = head.includes("function ") ? text.indexOf("$$", text.indexOf("$$", index) + 2) : index;
    return { path, start: index, end: text.indexOf(";", bodyEnd) + 1, bodyAt: 0, isExported: true };
  });
}
