import { execFile } from "node:child_process";
import { symlink, writeFile } from "node:fs/promises";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { OpenAPI3 } from "openapi-typescript";
import { openApiDocument } from "../../../api/docs/openapi-document.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import type { Service } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** A typed client as callers generate it: types from the document, and openapi-fetch. */

const modules = fileURLToPath(new URL("../../../node_modules", import.meta.url));

let service: Service;
let guarded: GuardedFolder;
let folder: string;
beforeAll(async () => {
  guarded = await GuardedFolder.create("serpmill-client-");
  folder = guarded.path;
  await symlink(modules, join(folder, "node_modules"));
  await writeFile(join(folder, "serpmill.ts"), await typesOf(openApiDocument()));
  service = await usualService();
});
afterAll(async () => {
  guarded.remove();
});

async function typesOf(document: object): Promise<string> {
  const compiler = new URL("./compiler-of-typescript.ts", import.meta.url).href;
  const hooks = registerHooks({
    resolve: (specifier, context, next) => next(specifier === "typescript" ? compiler : specifier, context),
  });
  const { astToString, default: generate } = await import("openapi-typescript");
  hooks.deregister();
  // A field with a default may be omitted. lint.test.ts proves that this is an OpenAPI document.
  return astToString(await generate(document as OpenAPI3, { defaultNonNullable: false }));
}

const program = `
  import createClient from "openapi-fetch";
  import type { components, paths } from "./serpmill.ts";

  const [, , baseUrl = "", token] = process.argv;
  const client = createClient<paths>({ baseUrl, headers: { Authorization: "Bearer " + token } });
  const search = async (body: components["schemas"]["SearchRequest"], key = "one") => {
    const { data, error } = await client.POST("/v1/serp/search", { body, params: { header: { "Idempotency-Key": key } } });
    if (!error && "totalResultsCount" in data) return data.results.filter(({ type }) => type === "organic").length;
    if (!error) return data.results.map(({ url }) => new URL(url).hostname.endsWith(".example"));
    if (error.error.code !== "bad_request") return error.error.code;
    return error.error.details.reason ?? error.error.details.issues;
  };
  const usage = await client.GET("/v1/usage");
  const outcomes = [
    await search({ keyword: "a", depth: 7 }),
    await search({ keyword: "b" }),
    await search({ keyword: "b", depth: 2, format: "compact" }, "two"),
    usage.data?.creditBalanceMils,
  ];
  console.log(JSON.stringify(outcomes));
`;

/** Compiles a program in the folder with this project's strict options. @throws with the compiler's output. */
async function compile(name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), text);
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2024", "--types", "node"];
  const strict = ["--allowImportingTsExtensions", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"];
  const command = [join(modules, "typescript/bin/tsc"), ...options, ...strict, "--skipLibCheck", name];
  await promisify(execFile)(process.execPath, command, { cwd: folder });
}

test("a client generated from the document compiles, and runs a search", async () => {
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await compile("program.ts", program);
  const { token } = await service.organization({ creditMils: 100 });
  const { stdout } = await promisify(execFile)(process.execPath, ["program.ts", service.apis[0]?.url ?? "", token], {
    cwd: folder,
  });
  expect(JSON.parse(stdout)).toEqual([7, "idempotency_key_reused", [true, true], 100]);
});

test("a client that uses a field that does not exist does not compile", async () => {
  const wrong = program.replace("depth: 7", 'depth: "7"').replace('"bad_request"', '"bad_reqest"');
  await expect(compile("wrong.ts", wrong)).rejects.toMatchObject({
    stdout: expect.stringMatching(/bad_reqest[^]*'string' is not assignable to type 'number'/),
  });
});
