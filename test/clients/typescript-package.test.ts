import { execFile } from "node:child_process";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { afterAll, expect, test } from "vitest";
import { openApiDocument } from "../../api/docs/openapi-document.ts";
import { schemaOfPythonClient } from "../../clients/python-schema.ts";
import { schemaOfTypescriptClient } from "../../clients/typescript-schema.ts";
import { readSource } from "../harness/assertions/sources.ts";
import { packTypescript } from "../harness/clients/packed-typescript.ts";

/** The npm package as a caller installs it. */

const codeBytesMax = 16_000;
const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));

const packed = await packTypescript();
const installed = join(packed.folder, "node_modules/serpmill");
await symlink(join(modules, "@types"), join(packed.folder, "node_modules/@types"));
afterAll(() => packed.remove());

test("the types are those of the API's document; `npm run clients` writes them", async () => {
  expect(readSource("clients/typescript/src/schema.ts")).toBe(await schemaOfTypescriptClient());
  expect(readSource("clients/python/src/serpmill/schema.py")).toBe(schemaOfPythonClient());
});

test("the package has the version of the API, its licence and a README, and depends on nothing", async () => {
  const { info } = openApiDocument();
  const manifest: unknown = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  expect(manifest).toMatchObject({ name: "serpmill", version: (info as { version: string }).version, license: "MIT" });
  expect(manifest).not.toHaveProperty("dependencies");
  expect(manifest).not.toHaveProperty("scripts");
  expect(packed.files).toEqual(expect.arrayContaining(["LICENSE", "README.md", "package.json"]));
});

test("it has code and types for both kinds of modules, and neither sources nor tests", () => {
  const code = packed.files.filter((path) => path.includes("/"));
  expect(code.filter((path) => !/^(esm|cjs)\/[a-z-]+(\.d\.ts|\.js)$/.test(path))).toEqual(["cjs/package.json"]);
  expect(code.filter((path) => path.endsWith("/serpmill.d.ts"))).toEqual(["cjs/serpmill.d.ts", "esm/serpmill.d.ts"]);
});

test.each(["esm", "cjs"] as const)("a program that loads it as %s loads at most 16 kB", async (kind) => {
  const code = packed.files.filter((path) => path.startsWith(`${kind}/`) && /(?<!\/cli)\.js$/.test(path));
  const texts = await Promise.all(code.map((path) => readFile(join(installed, path), "utf8")));
  expect(Buffer.byteLength(texts.join(""))).toBeLessThanOrEqual(codeBytesMax);
});

const construct = 'new Serpmill({ token: "smk_a", baseURL: "http://127.0.0.1:1" }).constructor.name';

test.each([
  ["esm.mjs", `import { Serpmill } from "serpmill"; console.log(${construct});`],
  ["cjs.cjs", `const { Serpmill } = require("serpmill"); console.log(${construct});`],
])("%s gets the client", async (name, program) => {
  await writeFile(join(packed.folder, name), program);
  expect(await promisify(execFile)(process.execPath, [name], { cwd: packed.folder })).toMatchObject({
    stdout: "Serpmill\n",
  });
});

test("in a minified program an error keeps its name", async () => {
  const call = 'new Serpmill({ token: "smk_a", baseURL: "http://127.0.0.1:1", maxRetries: 0 }).usage()';
  const program = `import { Serpmill } from "serpmill"; ${call}.catch(({ name }) => console.log(name));`;
  await writeFile(join(packed.folder, "whole.mjs"), program);
  const build = await rolldown({ input: join(packed.folder, "whole.mjs"), platform: "node" });
  await build.write({ file: join(packed.folder, "minified.mjs"), minify: true });
  await build.close();
  const { stdout } = await promisify(execFile)(process.execPath, ["minified.mjs"], { cwd: packed.folder });
  expect(stdout).toBe("LostReplyError\n");
});

const typed = `
  import { type CodedError, OutOfCreditsError, type Result, Serpmill, SerpmillError } from "serpmill";
  const client = new Serpmill();
  // Another code has this detail. If this one had it, \`true\` would be no value of the type.
  export const hasNoOther: "retryAfterMs" extends keyof OutOfCreditsError["details"] ? never : true = true;
  export function advise(error: unknown): string {
    if (!(error instanceof SerpmillError)) throw error;
    // If one were \`any\`, the type would have no value.
    const areChecked: unknown extends typeof error.code | typeof error.details ? never : true = true;
    return error.mayBeCharged && areChecked ? error.code : adviseByCode(error as CodedError);
  }
  function adviseByCode(error: CodedError): string {
    switch (error.code) {
      case "rate_limited":
        return error.details.reason === "concurrency" ? "later" : error.details.retryAfterMs.toFixed();
      case "bad_request":
        return error.details.issues?.[0]?.path ?? "";
      case "lost_reply":
        const isNarrowed: "topupUrl" extends keyof typeof error.details ? never : true = true;
        return isNarrowed ? error.message : "";
      default:
        return error.message;
    }
  }
  export async function first(): Promise<string | undefined> {
    try {
      const { results } = await client.search({ keyword: "tea", device: "mobile" });
      const compact = await client.search({ keyword: "tea", format: "compact" });
      const { requestId, isReplay } = await client.usage().withResponse();
      for await (const { answer, error } of client.searchMany([{ keyword: "tea" }]))
        console.log(answer ? answer.totalResultsCount : adviseByCode(error));
      console.log(compact.results[0]?.title, requestId, isReplay);
      const paid: Extract<Result, { type: "paid" }>[] = results.flatMap((one) => (one.type === "paid" ? [one] : []));
      return paid[0]?.domain;
    } catch (error) {
      if (!(error instanceof OutOfCreditsError)) throw error;
      return error.details.renewsAt?.slice(0, 10) ?? error.details.topupUrl;
    }
  }`;

test.each([
  [
    ["typed.ts", "typed.cts"],
    ["--module", "nodenext"],
  ],
  [["typed-node20.cts"], ["--module", "node20"]],
  [["typed-bundled.ts"], ["--module", "esnext", "--moduleResolution", "bundler"]],
])(
  "%s compiles under the strict options, and a class or a switch gives an error the details of its code and no others",
  async (names, options) => {
    const compiler = join(modules, "typescript/bin/tsc");
    const strict = ["--strict", "--noEmit", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"];
    for (const name of names) await writeFile(join(packed.folder, name), typed);
    const command = [compiler, ...strict, "--types", "node", ...options, ...names];
    const compile = promisify(execFile)(process.execPath, command, { cwd: packed.folder });
    expect(await compile.catch(({ stdout }) => stdout)).toMatchObject({ stdout: "" });
  },
);
