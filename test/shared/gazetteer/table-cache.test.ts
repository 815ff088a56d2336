import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

/** A process that opens a table of one number, which it fills with 7, and prints what it found and whether it filled it. */
const program = (decisive: string) => `
  import { cachedTables } from "${new URL("../../../shared/gazetteer/table-cache.ts", import.meta.url).href}";
  let filled = false;
  const fill = () => { filled = true; return new Map([["number", new Uint32Array([7])]]); };
  console.log(cachedTables(["${pathToFileURL(decisive).href}"], fill).get("number")[0], filled);
`;

test("tables are filled by the first start, and again if what decides about them changes or the kept ones are damaged", async () => {
  const folder = await mkdtemp(join(tmpdir(), "serpmill-tables-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const decisive = join(folder, "decisive");
  const start = async (env: Record<string, string>) => {
    const args = ["--input-type=module", "--eval", program(decisive)];
    return (await promisify(execFile)(process.execPath, args, { env })).stdout.trim();
  };
  const keeping = { NODE_COMPILE_CACHE: join(folder, "compiled") };
  await writeFile(decisive, "version 1");
  expect(await start({})).toBe("7 true");
  expect(await start(keeping)).toBe("7 true");
  expect(await start(keeping)).toBe("7 false");

  await writeFile(decisive, "version 2");
  expect(await start(keeping)).toBe("7 true");
  expect(await start(keeping)).toBe("7 false");

  const kept = await readdir(keeping.NODE_COMPILE_CACHE, { recursive: true });
  for (const name of kept.filter((path) => path.includes("tables-")))
    await truncate(join(keeping.NODE_COMPILE_CACHE, name), 3);
  expect(await start(keeping)).toBe("7 true");
});
