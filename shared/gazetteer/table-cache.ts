import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";

/** Has the pinned versions of the packages that tables are filled from. */
const versions = new URL("../../package.json", import.meta.url);

/**
 * Tables that take longer to fill than to read. They are cached in the folder of Node's compiled code (`NODE_COMPILE_CACHE`), if
 * this process has one: who may write there decides what code runs anyway.
 * @param files the URLs of the code that fills the tables. Once it, a package's version or ICU changes, they are filled again.
 */
export function cachedTables<Tables>(files: readonly string[], fill: () => Tables): Tables {
  const folder = getCompileCacheDir();
  if (folder === undefined) return fill();
  const path = join(folder, `tables-${hashOf(files)}`);
  const cached = readCached(path);
  // The same code filled them.
  if (cached !== undefined) return cached as Tables;
  const tables = fill();
  store(path, tables);
  return tables;
}

function hashOf(files: readonly string[]): string {
  const hash = createHash("sha256").update(process.versions.icu ?? "");
  for (const file of [versions, ...files]) hash.update(readFileSync(new URL(file)));
  return hash.digest("hex").slice(0, 32);
}

function readCached(path: string): unknown {
  try {
    return deserialize(readFileSync(path));
  } catch {
    return undefined; // No process has written them yet, or the file is damaged.
  }
}

// The rename is last, so that a process that ends meanwhile leaves nothing that looks like whole tables.
function store(path: string, tables: unknown): void {
  const unfinished = `${path}.${process.pid}`;
  try {
    writeFileSync(unfinished, serialize(tables));
    renameSync(unfinished, path);
  } catch {
    // The folder may be read-only, or its disk full. Every start fills the tables then.
  }
}
