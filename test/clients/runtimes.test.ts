import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readSource } from "../harness/assertions/sources.ts";
import { type PackedTypescript, packTypescript } from "../harness/clients/packed-typescript.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { Service } from "../harness/processes/service.ts";
import { casesOfFetch, endOf, runCases, searchDeadlineMs } from "./conformance-cases.ts";

/** The npm package on Deno and Bun, which npm installs: it keeps the promises of `clients/conformance.json` there too. */

const versions = { deno: "2.9.6", bun: "1.4.5" };
const installMsMax = 170_000;
const noRegistry = /npm error code (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH)/;

const runtimes = await GuardedFolder.create("serpmill-runtimes-");

/** Installs both. Without a registry the tests are skipped, and their titles say so. Any other failure is one of this file. */
async function install(): Promise<string> {
  const manifest = { private: true, dependencies: versions, allowScripts: { deno: true, bun: true } };
  await writeFile(join(runtimes.path, "package.json"), JSON.stringify(manifest));
  const command = ["install", "--no-audit", "--no-fund", "--fetch-retries", "0"];
  try {
    await promisify(execFile)("npm", command, { cwd: runtimes.path, timeout: installMsMax });
    return "";
  } catch (error) {
    const [, code] = noRegistry.exec(String(error)) ?? [];
    if (code === undefined) throw error;
    return ` (skipped: npm reaches no registry, ${code})`;
  }
}

const missing = await install();
const programs = join(runtimes.path, "node_modules/.bin");
// Deno gives a program only the rights that it is started with: the client needs these. It sends a request again by itself, under
// the same key, if the connection was used before and ends without an answer.
const deno = [join(programs, "deno"), "run", "--no-prompt", "--allow-net", "--allow-env"];
const commands = [
  { runtime: "Deno", command: deno, repeatsMax: 1 },
  { runtime: "Bun", command: [join(programs, "bun"), "run"], repeatsMax: 0 },
];

let service: Service;
let packed: PackedTypescript;
let driver: string;
beforeAll(async () => {
  const environment = { SEARCH_DEADLINE_MS: String(searchDeadlineMs) };
  [service, packed] = await Promise.all([Service.start({ environment }), packTypescript()]);
  driver = join(packed.folder, "driver.ts");
  const source = readSource("test/clients/conformance-driver.ts");
  await writeFile(driver, source.replace("../../clients/typescript/src/serpmill.ts", "serpmill"));
  const load = 'const { Serpmill } = require("serpmill");';
  await writeFile(join(packed.folder, "load.cjs"), `${load} console.log(typeof Serpmill);`);
});
afterAll(async () => {
  await service.stop();
  packed.remove();
  runtimes.remove();
});

describe.skipIf(missing !== "").each(commands)(`the npm package on $runtime${missing}`, ({ command, repeatsMax }) => {
  test("is loaded as CommonJS", async () => {
    const [program = "", ...args] = command;
    const { stdout } = await promisify(execFile)(program, [...args, join(packed.folder, "load.cjs")]);
    expect(stdout).toBe("function\n");
  });

  let ended: Awaited<ReturnType<typeof runCases>>;
  beforeAll(async () => {
    ended = await runCases(service, [...command, driver]);
  });

  test.each(casesOfFetch)("$promise", async (one) => {
    const { charges, uncounted } = await endOf(service, one, ended.get(one));
    expect(charges).toBe(one.expect.charges);
    expect(uncounted).toBeLessThanOrEqual(repeatsMax);
  });
});
