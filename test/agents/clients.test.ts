import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { newToken } from "../../api/tokens/tokens.ts";
import { endlessWindow } from "../harness/fixtures/refusals.ts";
import { run } from "../harness/processes/run.ts";
import { usualService } from "../harness/processes/usual-stack.ts";

/** The clients that agents are built with, each in a process of its own. */

const toolNames = ["serp.search", "usage.get", "serp_search", "usage_get"];
const keywords = ["coffee", "garden pump", "tea"];

const service = await usualService();
/** Lines that the API logged at its start, about its own settings. */
const startLines = service.apis[0]?.lines.length ?? 0;
const organization = await service.organization({ terms: endlessWindow });
const folder = await mkdtemp(join(tmpdir(), "serpmill-clients-"));
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Runs a client against the service. Whatever it stores is in a folder of this test. */
function runAgent(client: string, token: string) {
  const environment = { PATH: "", HOME: folder, LANGSMITH_TRACING: "false" };
  const url = `${service.apis[0]?.url}/mcp`;
  return run("test/agents/main.ts", [client, url, token, ...keywords], environment);
}

/** What the API logged above the level of its requests: warnings of Node, texts of libraries, errors. */
const complaints = () => service.apis[0]?.lines.slice(startLines).filter(({ level }) => Number(level) > infoLevel);
const infoLevel = 30; // pino's number for "info".

const clients = [
  { client: "sdk", shownFor401: "Tokens may expire or be revoked" },
  { client: "ai-sdk", shownFor401: "Tokens may expire or be revoked" },
  { client: "langchain", shownFor401: "Tokens may expire or be revoked" },
  { client: "mcp-remote", shownFor401: "There is no sign-in by OAuth" },
];

describe.each(clients)("an agent built with $client", ({ client, shownFor401 }) => {
  test("lists the tools, searches and reads its credit, without a warning on either side", async () => {
    const { exitCode, stdout, stderr } = await runAgent(client, organization.token);
    const { tools, answers } = JSON.parse(stdout);
    expect(tools).toEqual(toolNames);
    expect(answers).toHaveLength(keywords.length + 1);
    for (const answer of answers.slice(0, -1)) expect(JSON.stringify(answer)).toContain("creditsCharged");
    expect(JSON.stringify(answers.at(-1))).toContain("creditBalanceMils");
    expect({ exitCode, warnings: warningsIn(stderr) }).toEqual({ exitCode: 0, warnings: [] });
    expect(complaints()).toEqual([]);
  });

  test("shows its user what is wrong with a token that is refused", async () => {
    const { exitCode, stderr } = await runAgent(client, newToken());
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain(shownFor401);
  });
});

/** Lines of stderr that complain. `mcp-remote` also tells there what it does. */
const warningsIn = (stderr: string) => stderr.split("\n").filter((line) => /warn|error|fail|deprecat/i.test(line));
