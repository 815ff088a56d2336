import { registerHooks } from "node:module";
import type { OpenAPI3 } from "openapi-typescript";
import { openApiDocument } from "../api/docs/openapi-document.ts";
import { clientSchemas } from "./client-schemas.ts";

const heading = "// Generated from the OpenAPI document by `npm run clients`.\n";

/** Runs what needs TypeScript's compiler API, with the version that has one. */
export async function withCompiler<T>(run: () => Promise<T>): Promise<T> {
  const compiler = new URL("./compiler-of-typescript.ts", import.meta.url).href;
  const hooks = registerHooks({
    resolve: (specifier, context, next) => next(specifier === "typescript" ? compiler : specifier, context),
  });
  try {
    return await run();
  } finally {
    hooks.deregister();
  }
}

/** The types of a document in TypeScript. */
export async function typescriptTypes(document: object): Promise<string> {
  const { astToString, default: generate } = await withCompiler(() => import("openapi-typescript"));
  // A field with a default may be omitted. lint.test.ts proves that this is an OpenAPI document.
  return heading + astToString(await generate(document as OpenAPI3, { defaultNonNullable: false }));
}

/** What a comment has besides a description, and the type says as well. */
const saidByType = /\/\*\*\n *\* (@description .*)\n *\* @(?:constant|enum \{string\})\n *\*\//g;

/** The text of `clients/typescript/src/schema.ts`: the types of what is sent and answered. The client has its own calls. */
export async function schemaOfTypescriptClient(): Promise<string> {
  const types = await typescriptTypes({ ...openApiDocument(), paths: {}, components: { schemas: clientSchemas() } });
  return types.replaceAll(saidByType, "/** $1 */");
}
