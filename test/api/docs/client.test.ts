import { execFile } from "node:child_process";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { typescriptTypes, withCompiler } from "../../../clients/typescript-schema.ts";
import { openApiDocument } from "../../../api/docs/openapi-document.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** Typed clients as callers generate them: openapi-typescript with openapi-fetch, and hey-api. */

const modules = fileURLToPath(new URL("../../../node_modules", import.meta.url));

const guarded = await GuardedFolder.create("serpmill-client-");
const folder = guarded.path;
await symlink(modules, join(folder, "node_modules"));
await writeFile(join(folder, "package.json"), '{"type":"module"}');
await generate(openApiDocument());
const service = await usualService();
afterAll(async () => {
  guarded.remove();
});

/** Writes `serpmill.ts` and the folder `hey-api`. */
async function generate(document: object): Promise<void> {
  await writeFile(join(folder, "serpmill.ts"), await typescriptTypes(document));
  const input = join(folder, "openapi.json");
  await writeFile(input, JSON.stringify(document));
  const { createClient } = await withCompiler(() => import("@hey-api/openapi-ts"));
  await createClient({ input, output: join(folder, "hey-api"), logs: { level: "silent" } });
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

const strict = [
  "--module",
  "nodenext",
  "--target",
  "es2024",
  "--noUncheckedIndexedAccess",
  "--exactOptionalPropertyTypes",
];

/** Compiles a program in the folder, by default with this project's strict options. @throws with the compiler's output. */
async function compile(name: string, text: string, options = strict): Promise<void> {
  await writeFile(join(folder, name), text);
  const always = ["--strict", "--noEmit", "--types", "node", "--allowImportingTsExtensions", "--skipLibCheck"];
  const command = [join(modules, "typescript/bin/tsc"), ...always, ...options, name];
  await promisify(execFile)(process.execPath, command, { cwd: folder });
}

test("a client generated from the document compiles, and runs a search", async () => {
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

/** What callers write first, on whatever generated client: it must compile without a cast. */
const reading = `
  if (data) console.log(data.results[0].rank ?? "compact");
  if (error) switch (error.error.code) {
    case "rate_limited": console.log(new Date(Date.now() + error.error.details.retryAfterMs)); break;
    case "out_of_credits": console.log(error.error.details.renewsAt?.slice(0, 10), error.error.details.priceMils + 1); break;
    case "query_rejected": console.log(error.error.details.candidates?.join()); break;
    case "not_implemented": console.log(error.error.details.supported.join()); break;
    case "unavailable": case "engine_error": console.log(error.error.details.reason.toUpperCase());
  }
`;
const clients = {
  "openapi-typescript": `import createClient from "openapi-fetch"; import type { paths } from "./serpmill.ts";
    const { data, error } = await createClient<paths>().POST("/v1/serp/search", { body: { keyword: "a" } });`,
  "@hey-api/openapi-ts": `import { search } from "./hey-api";
    const { data, error } = await search({ body: { keyword: "a" } });`,
};

test.each(Object.entries(clients))(
  "types from %s read a rank, and narrow the details of an error by its code",
  async (name, call) => {
    const bundled = ["--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable"];
    await compile(`${name.replaceAll(/\W/g, "")}.ts`, call + reading, bundled);
    const wrong = reading.replace("details.renewsAt", "details.retryAfterMs");
    await expect(compile("wrong-details.ts", call + wrong, bundled)).rejects.toMatchObject({
      stdout: expect.stringMatching(/^wrong-details[^\n]*'retryAfterMs' does not exist[^\n]*\n([^w]|$)/),
    });
  },
);
