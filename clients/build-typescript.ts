import { execFile } from "node:child_process";
import { copyFile, cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { rolldown } from "rolldown";

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const source = pathOf("./typescript/");
const sourceOf = (name: string) => join(source, "src", `${name}.ts`);
const [library, command] = [sourceOf("serpmill"), sourceOf("cli")];
const compiler = pathOf("../node_modules/typescript/bin/tsc");
const compileMsMax = 120_000;

/** Builds the npm package into this folder: ES modules, CommonJS, and the types of both. */
export async function buildTypescript(folder: string): Promise<void> {
  const [esm, cjs] = [join(folder, "esm"), join(folder, "cjs")];
  await mkdir(cjs, { recursive: true });
  for (const file of ["package.json", "README.md"]) await copyFile(join(source, file), join(folder, file));
  await copyFile(pathOf("../LICENSE"), join(folder, "LICENSE"));
  // One file a kind: a program loads fewer of them, and CommonJS has no copy of each name.
  await Promise.all([bundle([library, command], "esm", esm), bundle([library], "cjs", cjs), declare(esm)]);
  await writeFile(join(cjs, "package.json"), '{ "type": "commonjs" }\n');
  const types = (await readdir(esm)).filter((name) => name.endsWith(".d.ts"));
  for (const name of types) await cp(join(esm, name), join(cjs, name));
}

async function bundle(input: string[], format: "esm" | "cjs", folder: string): Promise<void> {
  const build = await rolldown({ input, platform: "node", preserveEntrySignatures: "allow-extension" });
  await build.write({ dir: folder, format, comments: false });
  await build.close();
}

/** Checks the sources, and writes their types. */
async function declare(folder: string): Promise<void> {
  const options = ["--ignoreConfig", "--target", "es2022", "--lib", "es2023,dom,dom.iterable", "--module", "nodenext"];
  const checks = ["--strict", "--skipLibCheck", "--typeRoots", pathOf("../node_modules/@types"), "--types", "node"];
  const output = ["--rewriteRelativeImportExtensions", "--declaration", "--emitDeclarationOnly", "--outDir", folder];
  const all = [compiler, ...options, ...checks, ...output, "--rootDir", join(source, "src"), library];
  const { stdout } = await promisify(execFile)(process.execPath, all, { cwd: source, timeout: compileMsMax }).catch(
    // The compiler reports to its output.
    (error: Error & { stdout?: string }) => ({ stdout: error.stdout ?? error.message }),
  );
  if (stdout !== "") throw new Error(`The client does not compile:\n${stdout}`);
}
