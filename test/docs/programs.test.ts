import { execFile } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import type { SearchAnswer } from "../../clients/typescript/src/serpmill.ts";
import { packTypescript } from "../harness/clients/packed-typescript.ts";
import { pythonPath, withoutPython } from "../harness/clients/python.ts";
import { codeLoading } from "../harness/processes/code-loading.ts";
import { usualService } from "../harness/processes/usual-stack.ts";
import { startOpenAiStub } from "../harness/stubs/openai-stub.ts";
import { pages } from "./markdown.ts";

/**
 * The programs of the documentation, run as a reader runs them: a block marked `ts runnable` or `python runnable`, with the
 * packed client and the libraries that it names, against a real service. Only the models are replaced.
 */

const checkout = fileURLToPath(new URL("../../", import.meta.url));
const fakeModel = fileURLToPath(new URL("./fake-model.ts", import.meta.url));
const programMsMax = 60_000;
const libraries = ["@langchain/core", "@types", "ai", "openai", "zod"];

const languages = ["ts", "python"] as const;
const programs = pages.flatMap(({ path, blocks }) =>
  blocks.flatMap(({ info, text, line }) => {
    const language = languages.find((one) => info === `${one} runnable`);
    return language ? [{ place: `${path}:${line}`, language, text }] : [];
  }),
);
type Program = (typeof programs)[number];

const [service, packed, openai] = await Promise.all([
  usualService(),
  packTypescript(),
  startOpenAiStub("best coffee beans"),
]);
for (const name of libraries) {
  const installed = join(packed.folder, "node_modules", name);
  await mkdir(dirname(installed), { recursive: true });
  await symlink(join(checkout, "node_modules", name), installed);
}
afterAll(async () => {
  packed.remove();
  await openai.close();
});

function run({ language, text }: Program, token: string) {
  const [program, ...args] =
    language === "ts"
      ? [process.execPath, "--import", fakeModel, "--input-type=module-typescript", "--eval", text]
      : [pythonPath, "-B", "-c", text];
  const env = {
    ...codeLoading,
    NODE_PRESERVE_SYMLINKS: "0", // The libraries are behind links.
    SERPMILL_TOKEN: token,
    SERPMILL_URL: service.apis[0]?.url,
    PYTHONPATH: join(checkout, "clients/python/src"),
    OPENAI_API_KEY: "sk-none",
    OPENAI_BASE_URL: openai.url,
  };
  return promisify(execFile)(program ?? "", args, { cwd: packed.folder, env, timeout: programMsMax });
}

// Those in Python need Python 3.10 or newer.
const runnable = programs.filter(({ language }) => language === "ts" || withoutPython === "");

const chargesOf = async (organizationId: string) =>
  (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;

test.concurrent.each(runnable)("the program at $place searches and prints results", async (program) => {
  const { token, organizationId } = await service.organization();
  const { stdout, stderr } = await run(program, token);
  expect(stderr).toBe("");
  expect(stdout).toMatch(/best coffee beans/i);
  expect(await chargesOf(organizationId)).toBeGreaterThan(0);
});

test.concurrent.each(runnable)("the program at $place says why it has no credit", async (program) => {
  const { token } = await service.organization({ creditMils: 0 });
  const { stdout, stderr } = await run(program, token).catch(
    (error: Error & { stdout: string; stderr: string }) => error,
  );
  expect(stdout + stderr).toMatch(/out_of_credits|OutOfCreditsError|\/billing/);
});

const rankCheck = (): Program => {
  const check = programs.find(({ text }) => text.includes("ranks-{day}"));
  if (!check) throw new Error("docs/recipes.md has no rank check");
  return check;
};

describe.skipIf(withoutPython !== "")(`in Python${withoutPython}`, () => {
  test("the rank check of a day pays for each keyword once, however often it runs, and for each domain", async () => {
    const { token, organizationId } = await service.organization();
    const check = rankCheck();
    const { stdout } = await run(check, token);
    const again = await run(check, token);
    expect(again.stdout.split("\n").toSorted()).toEqual(stdout.split("\n").toSorted());
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\d,harbour-almanac\.example,best coffee beans,\d+\r?$/m);
    expect(await chargesOf(organizationId)).toBe(2);

    const other = await run({ ...check, text: check.text.replace("harbour-almanac", "amber-chronicle") }, token);
    expect(other.stdout).not.toMatch(/idempotency|bad_request/);
    expect(await chargesOf(organizationId)).toBe(4);
  });

  test("the rank check counts no ad of the domain", async () => {
    const { token } = await service.organization();
    const advertiser = "indigo-chronicle.example";
    const query = { keyword: "best coffee beans", depth: 30, targetDomain: advertiser };
    const { results } = (await service.search(token, query)).body as SearchAnswer;
    const rankOf = (type: string) => results.find((result) => result.type === type)?.rank ?? 0;
    expect(rankOf("organic")).toBeGreaterThan(rankOf("paid"));

    const check = rankCheck();
    const { stdout } = await run({ ...check, text: check.text.replace("harbour-almanac.example", advertiser) }, token);
    expect(stdout).toMatch(new RegExp(`,best coffee beans,${rankOf("organic")}\\r?$`, "m"));
  });

  test("cron needs nothing but its line and the files that it names to start the rank check", async () => {
    const { token } = await service.organization();
    const [line = ""] = pages.flatMap(({ blocks }) =>
      blocks.flatMap(({ info, text }) => (info === "crontab" ? [text] : [])),
    );
    const ranks = join(packed.folder, "ranks");
    await mkdir(join(ranks, ".venv/bin"), { recursive: true });
    await symlink(pythonPath, join(ranks, ".venv/bin/python"));
    await symlink(join(checkout, "clients/python/src/serpmill"), join(ranks, "serpmill"));
    const settings = { SERPMILL_TOKEN: token, SERPMILL_URL: service.apis[0]?.url, PYTHONDONTWRITEBYTECODE: "1" };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    await writeFile(join(ranks, ".env"), lines.join(""));
    await writeFile(join(ranks, "ranks.py"), rankCheck().text);
    const [command = ""] = /(?<=^(?:\S+ ){5}).*/.exec(line) ?? [];
    await promisify(execFile)("/bin/sh", ["-c", command], { cwd: packed.folder, env: {}, timeout: programMsMax });
    expect(await readFile(join(ranks, "ranks.csv"), "utf8")).toMatch(/best coffee beans,\d+/);
  });
});

test("the programs compile under strict options with the types of their libraries", async () => {
  const typescript = programs.filter(({ language }) => language === "ts");
  const names = typescript.map((_, at) => `program-${at}.ts`);
  for (const [at, { text }] of typescript.entries()) await writeFile(join(packed.folder, names[at] ?? ""), text);
  const compiler = join(checkout, "node_modules/typescript/bin/tsc");
  const strict = ["--strict", "--noEmit", "--skipLibCheck", "--target", "es2024", "--module", "nodenext"];
  const command = [compiler, ...strict, "--types", "node", ...names];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: packed.folder }).catch(
    (error: Error & { stdout?: string }) => ({ stdout: error.stdout ?? error.message }), // The compiler reports to its output.
  );
  expect(stdout).toBe("");
});
