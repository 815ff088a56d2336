import { execFile } from "node:child_process";
import { isDeepStrictEqual, promisify } from "node:util";
import { expect, test } from "vitest";
import { usualService } from "../harness/processes/usual-stack.ts";
import { type Page, pages } from "./markdown.ts";

/**
 * The examples of the documentation, run as a reader runs them. A block marked `sh runnable` is run by bash against a real
 * service; the block `json answer` that follows is compared with what it printed. Blocks of a page run in order, for
 * an organization of its own.
 */

const initialMils = 1_000;
const commandMsMax = 30_000;
// Ids and counts that differ from run to run: only their type is compared.
const varying = new Set(["requestId", "orgId", "token", "tokenId", "organizations", "entries", "readEntries"]);

const withExamples = pages.filter(({ blocks }) => blocks.some(({ info }) => info === "sh runnable"));

const service = await usualService();

test("the README and the page about the API have examples that are run", () => {
  expect(withExamples.map(({ path }) => path)).toEqual(expect.arrayContaining(["README.md", "docs/api.md"]));
});

test.each(withExamples)("the examples of $path print the answers that it shows", async (page) => {
  const { token } = await service.organization({ plan: "free", creditMils: initialMils });
  for (const { command, answer, line } of examplesOf(page)) {
    const shown: unknown = JSON.parse(answer);
    const printed: unknown = JSON.parse(await run(command, token));
    expect(asShown(printed, shown), `${page.path}:${line}`).toEqual(shown);
  }
});

function examplesOf({ blocks, path }: Page): { command: string; answer: string; line: number }[] {
  return blocks.flatMap(({ info, text, line }, at) => {
    const next = blocks[at + 1];
    if (info !== "sh runnable") return [];
    if (next?.info !== "json answer") throw new Error(`${path}:${line}: no answer is shown`);
    return [{ command: text, answer: next.text, line }];
  });
}

/** Runs a block with the address, the token and the stores of this service in place of those of `npm start`. */
async function run(block: string, token: string): Promise<string> {
  const script =
    `export SERPMILL_URL=http://127.0.0.1:3000 SERPMILL_TOKEN='${token}' DATABASE_URL='${service.processDatabaseUrl}' REDIS_URL='${service.redisServer.url}' SERP_PROVIDERS=sandbox\n${block}`
      .replaceAll("http://127.0.0.1:3000", service.apis[0]?.url ?? "")
      .replaceAll("$(cat .serpmill/token)", token)
      .replaceAll(". .serpmill/env\n", "");
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], { timeout: commandMsMax });
  return stdout;
}

/**
 * What was printed, reduced to what the page shows: it may leave out elements of lists, and ids differ. It equals what is
 * shown if the page is true.
 */
function asShown(printed: unknown, shown: unknown, key = ""): unknown {
  if (varying.has(key)) return typeof printed === typeof shown ? shown : printed;
  if (Array.isArray(printed) && Array.isArray(shown)) {
    return shown.map((element) => {
      const candidates = printed.map((candidate) => asShown(candidate, element));
      return candidates.find((candidate) => isDeepStrictEqual(candidate, element)) ?? "not printed";
    });
  }
  if (!isObject(printed) || !isObject(shown)) return printed;
  return Object.fromEntries(Object.entries(printed).map(([name, value]) => [name, asShown(value, shown[name], name)]));
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
