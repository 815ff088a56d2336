import { dirname, relative } from "node:path/posix";
import type { Edit, Mutant } from "./mutant.ts";
import { type Files, findSymbol } from "./symbols.ts";

/**
 * Applies a mutant to the product.
 * @returns the new text of each file that it changes.
 * @throws if a symbol is missing or ambiguous, an anchor is missing or not unique, or an edit changes nothing.
 */
export function applyMutant(files: Files, { name, edits }: Mutant): Map<string, string> {
  const changed = new Map<string, string>();
  try {
    for (const edit of edits) {
      const [path, text] = applyEdit(new Map([...files, ...changed]), edit);
      changed.set(path, text);
    }
  } catch (error) {
    throw new Error(`mutant ${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  return changed;
}

function applyEdit(files: Files, { symbol, mutate, calls = [] }: Edit): [path: string, text: string] {
  const { path, start, end, bodyAt } = findSymbol(files, symbol);
  const text = files.get(path) ?? "";
  const before = text.slice(start, end);
  const after = mutate(before, bodyAt);
  if (after === before) throw new Error(`the edit of ${symbol.name} changes nothing`);
  const imports = calls.map((called) => importOf(files, path, called)).join("");
  return [path, imports + text.slice(0, start) + after + text.slice(end)];
}

/** The line that imports a name into a file; empty if the file imports or declares it already. */
function importOf(files: Files, path: string, name: string): string {
  const isDeclared = new RegExp(`^import [^;]*\\b${name}\\b[^;]* from |\\b(function|const|class) ${name}\\b`, "m");
  if (isDeclared.test(files.get(path) ?? "")) return "";
  const isExport = new RegExp(`^export (async )?(function|const|class) ${name}\\b`, "m");
  const exporting = [...files].filter(([, text]) => isExport.test(text)).map(([file]) => file);
  const [from] = exporting;
  if (from === undefined || exporting.length > 1)
    throw new Error(`${name} is exported by ${exporting.join(", ") || "no file"}`);
  const target = relative(dirname(path), from);
  return `import { ${name} } from "${target.startsWith(".") ? target : `./${target}`}";\n`;
}
