import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** One file of the checkout. `path` is relative to the checkout's root. */
export interface Source {
  path: string;
  text: string;
  lines: string[];
}

/** The files of the checkout that match, without installed packages. */
export function sources(...patterns: string[]): Source[] {
  const found = globSync(patterns, { cwd: root, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = found.map((entry) => relative(root, join(entry.parentPath, entry.name)));
  return paths.toSorted().map((path) => {
    const text = readSource(path);
    return { path, text, lines: text.replace(/\n$/, "").split("\n") };
  });
}

export const readSource = (path: string) => readFileSync(join(root, path), "utf8");

const text = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;

/** The lines of a file without comments and without the contents of strings. */
export function codeLines({ text: source }: Source): string[] {
  return source.replace(text, (found) => `""${found.replace(/[^\n]/g, "")}`).split("\n");
}

/** Where a line matches, as `file:line`; a line of code, unless `linesOf` selects others. */
export function places(files: readonly Source[], pattern: RegExp, linesOf = codeLines): string[] {
  return files.flatMap((source) =>
    linesOf(source).flatMap((line, at) => (pattern.test(line) ? [`${source.path}:${at + 1}`] : [])),
  );
}

/** One import of a file. */
export interface Import {
  /** A path from the root of the checkout, or the import specifier of a package. */
  target: string;
  isFile: boolean;
  /** Whether type stripping removes it. */
  typeOnly: boolean;
}

const statement = /^(?:import|export)\s([^"';]*?\sfrom\s)?["']([^"']+)["']/gm;
const dynamic = /\bimport(?:\.meta\.resolve)?\(\s*["']([^"']+)["']\s*\)/g;
// Programs that are started, and Lua files in their caller's folder.
const byUrl = /\bnew URL\(\s*["'`]([^"'`$*]+\.(?:ts|lua))["'`]\s*,\s*import\.meta\.url/g;
const lua = /\bhere\(\s*["']([^"']+\.lua)["']/g;

/** Everything that a file loads. */
export function importsOf({ path, text: source }: Source): Import[] {
  const statements = [...source.matchAll(statement)].map(([, clause = "", from = ""]) => ({
    from,
    typeOnly: isTypeOnly(clause),
  }));
  const named = [dynamic, byUrl, lua].flatMap((pattern) =>
    [...source.matchAll(pattern)].map(([, from = ""]) => ({ from, typeOnly: false })),
  );
  return [...statements, ...named].map(({ from, typeOnly }) => {
    const isFile = from.startsWith(".") || from.endsWith(".lua");
    return { target: isFile ? join(dirname(path), from) : from, isFile, typeOnly };
  });
}

function isTypeOnly(clause: string): boolean {
  if (/^type\s/.test(clause)) return true;
  const names = /^\{([^}]*)\}/
    .exec(clause)?.[1]
    ?.split(",")
    .filter((name) => name.trim() !== "");
  return names?.every((name) => /^\s*type\s/.test(name)) ?? false;
}

/** The packages that files import, by name. */
export function packagesOf(files: readonly Source[]): Set<string> {
  const targets = files.flatMap((source) => importsOf(source).filter(({ isFile }) => !isFile));
  const names = targets.map(({ target }) => /^(@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? target);
  return new Set(names.filter((name) => !name.startsWith("node:")));
}

export const exists = (path: string) => existsSync(join(root, path));

/** Functions with their lengths in lines, found by the indentation that the formatter keeps. */
export function functionsOf(source: Source): { at: number; name: string; length: number }[] {
  const { lines } = source;
  return lines.flatMap((line, at) => {
    if (!/\bfunction\b|=>|^\s+[\w#][\w\s#]*\(/.test(line) || !/[{(]$/.test(line)) return [];
    if (/^\s*describe\b/.test(line)) return []; // A group of tests, not a function.
    const end = endOf(lines, at);
    return end === undefined ? [] : [{ at: at + 1, name: line.trim(), length: end - at + 1 }];
  });
}

function endOf(lines: readonly string[], start: number): number | undefined {
  const indent = indentOf(lines[start] ?? "");
  for (let at = start + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (line.trim() === "" || indentOf(line) > indent) continue;
    // A parameter list that took several lines ends with the head of the body.
    if (line.trim().startsWith(")") && /[{]$/.test(line)) continue;
    return line.trim().startsWith("}") ? at : undefined;
  }
  return undefined;
}

const indentOf = (line: string) => line.length - line.trimStart().length;
