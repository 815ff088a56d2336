import { execFile } from "node:child_process";
import { copyFile, cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const source = pathOf("./typescript/");
const compiler = pathOf("../node_modules/typescript/bin/tsc");
const compileMsMax = 120_000;

const always = ["--target", "es2022", "--lib", "es2023,dom,dom.iterable", "--strict", "--skipLibCheck"];
const paths = [
  "--rewriteRelativeImportExtensions",
  "--rootDir",
  join(source, "src"),
  "--typeRoots",
  pathOf("../node_modules/@types"),
  "--types",
  "node",
];

/** Builds the npm package into this folder: ES modules, CommonJS, and the types of both. */
export async function buildTypescript(folder: string): Promise<void> {
  const [esm, cjs] = [join(folder, "esm"), join(folder, "cjs")];
  await mkdir(cjs, { recursive: true });
  for (const file of ["package.json", "README.md"]) await copyFile(join(source, file), join(folder, file));
  await copyFile(pathOf("../LICENSE"), join(folder, "LICENSE"));
  await Promise.all([
    compile("cli.ts", ["--module", "nodenext", "--outDir", esm, "--removeComments"]),
    compile("serpmill.ts", ["--module", "nodenext", "--outDir", esm, "--declaration", "--emitDeclarationOnly"]),
    compile("serpmill.ts", [
      "--module",
      "commonjs",
      "--moduleResolution",
      "bundler",
      "--outDir",
      cjs,
      "--removeComments",
    ]),
  ]);
  await writeFile(join(cjs, "package.json"), '{ "type": "commonjs" }\n');
  for (const kind of [esm, cjs]) await indentWithTabs(kind);
  const types = (await readdir(esm)).filter((name) => name.endsWith(".d.ts"));
  for (const name of types) await cp(join(esm, name), join(cjs, name));
}

/** The compiler indents by four spaces, which are a tenth of the code that a program loads. */
async function indentWithTabs(folder: string): Promise<void> {
  for (const name of (await readdir(folder)).filter((file) => file.endsWith(".js"))) {
    const code = await readFile(join(folder, name), "utf8");
    await writeFile(
      join(folder, name),
      code.replaceAll(/^(?: {4})+/gm, (spaces) => "\t".repeat(spaces.length / 4)),
    );
  }
}

async function compile(entry: string, options: string[]): Promise<void> {
  const command = [compiler, "--ignoreConfig", ...always, ...paths, ...options, join(source, "src", entry)];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: source, timeout: compileMsMax }).catch(
    // The compiler reports to its output.
    (error: Error & { stdout?: string }) => ({ stdout: error.stdout ?? error.message }),
  );
  if (stdout !== "") throw new Error(`The client does not compile:\n${stdout}`);
}
