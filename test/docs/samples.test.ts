import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { aboutTheApi } from "../../api/docs/openapi-descriptions.ts";
import { openApiDocument } from "../../api/docs/openapi-document.ts";
import { sources } from "../harness/assertions/sources.ts";
import { pythonPath } from "../harness/clients/python.ts";
import type { Service } from "../harness/processes/service.ts";
import { usualService } from "../harness/processes/usual-stack.ts";
import { pages } from "./markdown.ts";

/** The code that the reference shows; the playground, the landing page and `npm start` show the same. A caller copies and runs it. */

const codeMsMax = 60_000;
const withSamples = z.object({
  "x-custom-examples": z.array(
    z.object({ lang: z.enum(["curl", "javascript", "python"]), source: z.string(), example: z.string().optional() }),
  ),
});
const paths = z.record(z.string(), z.record(z.string(), withSamples)).parse(openApiDocument().paths);
const samples = Object.entries(paths).flatMap(([path, operations]) =>
  Object.values(operations).flatMap((operation) =>
    operation["x-custom-examples"].map((sample) => ({ path, ...sample })),
  ),
);
const ofFirstExample = samples.filter(({ example }) => example === undefined || example === "keywordAlone");
const [, start = ""] = /```sh\n(.*?)```/s.exec(aboutTheApi) ?? [];
const all = [
  ...ofFirstExample,
  { path: "the section Start", lang: "curl" as const, source: start.replace("=smk_…", "=$SERPMILL_TOKEN") },
];

const programs = {
  curl: ["/bin/sh", "-eu", "-c"],
  javascript: [process.execPath, "--input-type=module", "--eval"],
  python: [pythonPath, "-B", "-c"],
};
const hasRequests = pythonPath !== "" && spawnSync(pythonPath, ["-c", "import requests"]).status === 0;

const service = await usualService();

// Those in Python are skipped without its package `requests`.
const runnable = all.filter(({ lang }) => lang !== "python" || hasRequests);

describe.each(runnable)("the $lang of the reference for $path", ({ lang, source, path }) => {
  async function run(organization: Parameters<Service["organization"]>[0]) {
    const { token, organizationId } = await service.organization(organization);
    const code = source.replaceAll("https://HOST", service.apis[0]?.url ?? "");
    const [program = "", ...args] = programs[lang];
    const ended = await promisify(execFile)(program, [...args, code], {
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", SERPMILL_TOKEN: token },
      timeout: codeMsMax,
    }).catch(({ stdout, stderr }: Error & { stdout: string; stderr: string }) => ({ stdout, stderr, exitCode: 1 }));
    return { exitCode: 0, ...ended, organizationId };
  }

  test("prints the answer", async () => {
    const { exitCode, stdout, stderr, organizationId } = await run({});
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const field = path === "/v1/usage" ? "creditBalanceMils" : "requestId";
    expect(stdout).toMatch(new RegExp(`\\b${field}\\b`));
    const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
    expect(charges).toHaveLength(path === "/v1/usage" ? 0 : 1);
  });

  test("fails with the code of an error", async () => {
    const { exitCode, stdout, stderr } = await run({ creditMils: 0, scopes: ["billing"] });
    expect(exitCode).toBe(1);
    expect(stdout + stderr).toContain("unauthenticated");
  });
});

test("every sample reads the token from SERPMILL_TOKEN, has a time-out and, if it searches, a key", () => {
  const code = [
    ...all.map(({ path, lang, source }) => ({ place: `the reference: ${path} in ${lang}`, text: source })),
    ...pages.flatMap(({ path, blocks }) => blocks.map(({ line, text }) => ({ place: `${path}:${line}`, text }))),
    ...sources("api/{landing,billing,playground}/**/*.ts").map(({ path, text }) => ({ place: path, text })),
  ];
  const calls = code.filter(
    ({ text }) => /\/v1\/serp\/search["'\s]/.test(text) && /curl|fetch\(|requests\./.test(text),
  );
  expect(calls.length).toBeGreaterThan(5);
  expect(calls.filter(({ text }) => !/Idempotency-Key/.test(text)).map(({ place }) => place)).toEqual([]);
  expect(calls.filter(({ text }) => !/--max-time 35|35_000|timeout=35/.test(text)).map(({ place }) => place)).toEqual(
    [],
  );
  const otherName = /\$\{?(?:TOKEN|API_KEY)\b|env\.(?:TOKEN|API_KEY)\b|SERPMILL_(?:API_KEY|KEY|BASE_URL)/;
  expect(code.filter(({ text }) => otherName.test(text)).map(({ place }) => place)).toEqual([]);
});
