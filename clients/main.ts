import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { buildTypescript } from "./build-typescript.ts";
import { schemaOfPythonClient } from "./python-schema.ts";
import { schemaOfTypescriptClient } from "./typescript-schema.ts";

/** `npm run clients`: generates the clients' types from the API's document, and builds the npm package. */

const fileOf = (path: string) => new URL(path, import.meta.url);
await writeFile(fileOf("./typescript/src/schema.ts"), await schemaOfTypescriptClient());
await writeFile(fileOf("./python/src/serpmill/schema.py"), schemaOfPythonClient());
await buildTypescript(fileURLToPath(fileOf("./typescript/dist/")));
