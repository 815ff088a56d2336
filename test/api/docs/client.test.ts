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

/** The options of this project. */
const strict = [
  "--module",
  "nodenext",
  "--target",
  "es2024",
  "--noUncheckedIndexedAccess",
  "--exactOptionalPropertyTypes",
];

/** Compiles programs in the folder together. @throws with the compiler's output. */
async function compile(programs: Record<string, string>, options: readonly string[]): Promise<void> {
  for (const [name, text] of Object.entries(programs)) await writeFile(join(folder, name), text);
  const always = ["--strict", "--noEmit", "--types", "node", "--allowImportingTsExtensions", "--skipLibCheck"];
  const command = [join(modules, "typescript/bin/tsc"), ...always, ...options, ...Object.keys(programs)];
  await promisify(execFile)(process.execPath, command, { cwd: folder });
}

test("a client generated from the document compiles, and runs a search", async () => {
  await compile({ "program.ts": program }, strict);
  const { token } = await service.organization({ creditMils: 100 });
  const { stdout } = await promisify(execFile)(process.execPath, ["program.ts", service.apis[0]?.url ?? "", token], {
    cwd: folder,
  });
  expect(JSON.parse(stdout)).toEqual([7, "idempotency_key_reused", [true, true], 100]);
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
const callers = {
  "openapi-typescript": `import createClient from "openapi-fetch"; import type { paths } from "./serpmill.ts";
    const { data, error } = await createClient<paths>().POST("/v1/serp/search", { body: { keyword: "a" } });`,
  "hey-api": `import { search } from "./hey-api";
    const { data, error } = await search({ body: { keyword: "a" } });`,
};

test("generated types check the fields of a query, read a rank, and narrow the details of an error by its code", async () => {
  const programs = Object.entries(callers).flatMap(([name, call]) => [
    [`${name}-right.ts`, call + reading],
    [`${name}-query.ts`, call.replace('"a"', "1") + reading],
    [`${name}-details.ts`, call + reading.replace("details.renewsAt", "details.retryAfterMs")],
  ]);
  const bundled = ["--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable"];
  const errors = await compile(Object.fromEntries(programs), bundled).then(
    () => "",
    ({ stdout }) => String(stdout),
  );
  expect(errors.match(/^\S.*$/gm)?.toSorted()).toEqual([
    expect.stringMatching(/^hey-api-details.*'retryAfterMs' does not exist/),
    expect.stringMatching(/^hey-api-query.*'number' is not assignable to type 'string'/),
    expect.stringMatching(/^openapi-typescript-details.*'retryAfterMs' does not exist/),
    expect.stringMatching(/^openapi-typescript-query.*'number' is not assignable to type 'string'/),
  ]);
});
