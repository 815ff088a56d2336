import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import spectralCore from "@stoplight/spectral-core";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../../api/docs/openapi-document.ts";
import { codeLoading } from "../../harness/processes/code-loading.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { exceptions, ruleset } from "./spectral-ruleset.ts";

/** The document passes the common OpenAPI linters. */

const scoreMin = 90;

const guarded = await GuardedFolder.create("serpmill-openapi-");
const folder = guarded.path;
await writeFile(join(folder, "openapi.json"), JSON.stringify(openApiDocument()));
afterAll(() => guarded.remove());

/** Runs Redocly's command without telemetry and without its check for updates. */
async function redocly(...args: string[]): Promise<unknown> {
  const program = fileURLToPath(new URL("../../../node_modules/@redocly/cli/bin/cli.js", import.meta.url));
  const env = { ...codeLoading, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const command = [program, ...args, "--format=json"];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: folder, env });
  return JSON.parse(stdout);
}

test("Redocly finds nothing, warnings included", async () => {
  expect(await redocly("lint", "openapi.json", "--extends=recommended-strict")).toMatchObject({
    totals: { errors: 0, warnings: 0, ignored: 0 },
    problems: [],
  });
});

test(`Redocly's score of the document is at least ${scoreMin}`, async () => {
  const { agentReadiness } = z.object({ agentReadiness: z.number() }).parse(await redocly("score", "openapi.json"));
  expect(agentReadiness).toBeGreaterThanOrEqual(scoreMin);
});

test("Spectral finds nothing, OWASP's rules included, beyond the exceptions; and each exception is needed", async () => {
  const { Ruleset, Spectral } = spectralCore;
  const spectral = new Spectral();
  spectral.setRuleset(new Ruleset(ruleset));
  const found = await spectral.run(openApiDocument());
  const findings = found.map(({ code, path, message }) => ({ rule: String(code), where: path.join("/"), message }));
  const isOf = ({ rule, where }: (typeof findings)[number], [named, at]: (typeof exceptions)[number]) =>
    named === rule && at.test(where);
  expect(findings.filter((finding) => !exceptions.some((one) => isOf(finding, one)))).toEqual([]);
  expect(exceptions.filter((one) => !findings.some((finding) => isOf(finding, one)))).toEqual([]);
});
