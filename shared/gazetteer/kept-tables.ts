import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { join } from "node:path";

/**
 * Tables that take longer to fill than to read. They are kept in the folder of Node's compiled code (`NODE_COMPILE_CACHE`), if
 * this process has one: who may write there decides what code runs anyway.
 * @param options.files the files that decide what the tables hold: once one of them changes, the tables are filled again.
 */
export function keptTables(options: {
  bytes: number;
  files: readonly URL[];
  compute: (tables: ArrayBuffer) => void;
}): ArrayBuffer {
  const folder = getCompileCacheDir();
  const path = folder === undefined ? undefined : join(folder, `tables-${hashOf(options.files)}`);
  const kept = path === undefined ? undefined : readKept(path);
  if (kept?.byteLength === options.bytes) return kept;
  const tables = new ArrayBuffer(options.bytes);
  options.compute(tables);
  if (path !== undefined) keep(path, tables);
  return tables;
}

function hashOf(files: readonly URL[]): string {
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest("hex").slice(0, 32);
}

function readKept(path: string): ArrayBuffer | undefined {
  try {
    return new Uint8Array(readFileSync(path)).buffer; // A copy: Node reads a small file into a larger buffer.
  } catch {
    return undefined; // No process has kept them yet.
  }
}

// The rename is last, so that a process that ends meanwhile leaves nothing that looks like whole tables.
function keep(path: string, tables: ArrayBuffer): void {
  const unfinished = `${path}.${process.pid}`;
  try {
    writeFileSync(unfinished, new Uint8Array(tables));
    renameSync(unfinished, path);
  } catch {
    // The folder may be read-only, as in the image, or its disk full. Every start fills the tables then.
  }
}
