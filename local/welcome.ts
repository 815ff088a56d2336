/**
 * What callers need to try a service that runs: its addresses, a token and a curl line. `npm start` prints it at its end, and
 * deploy/quick.yml runs this file as a program.
 */
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { z } from "zod";
import { createSignInCode, signInCodeMinutes } from "../api/billing/session/sign-in-codes.ts";
import { searchCode } from "../api/search-samples.ts";
import { hashToken } from "../api/tokens/tokens.ts";
import { begin, fail, print, printBox, say } from "./start-output.ts";
import { withRedis } from "./with-redis.ts";

const workerPollMs = 50;
const workerWaitMsMax = 60_000;
const creditMils = 1_000;
const balanceMilsMin = 100; // Enough for a few searches on any likely plan.
const commandTimeoutMs = 30_000;
const requestTimeoutMs = 5_000;
const adminFile = join(import.meta.dirname, "..", "commands", "main.ts");

const created = z.object({ token: z.string() });
const found = z.object({ orgId: z.string() });
const usage = z.object({ creditBalanceMils: z.number() });

/** The API accepts searches once it has read a worker's heartbeat, a moment after both are ready. @throws after a minute. */
export async function waitUntilWorkerIsSeen(apiOpsUrl: string): Promise<void> {
  const giveUpAtMs = performance.now() + workerWaitMsMax;
  const isSeen = async () =>
    /^workers_reporting [1-9]/m.test(
      await (await fetch(`${apiOpsUrl}/metrics`, { signal: AbortSignal.timeout(requestTimeoutMs) })).text(),
    );
  // A request may fail while the machine is busy with the start.
  while (!(await isSeen().catch(() => false))) {
    if (performance.now() > giveUpAtMs) throw new Error(`The API sees no worker after ${workerWaitMsMax / 1_000} s.`);
    await sleep(workerPollMs);
  }
}

/**
 * @param options.apiUrl where this process reaches the API.
 * @param options.callersUrl where callers reach it.
 * @param options.tokenFile keeps the token for the next start.
 * @param options.operate a command that lists the operator's commands.
 * @param options.environment the settings, for the command that creates an organization, and with the address of Redis.
 */
export async function welcome(options: {
  apiUrl: string;
  callersUrl: string;
  tokenFile: string;
  shownTokenFile: string;
  operate: string;
  environment: NodeJS.ProcessEnv;
}): Promise<void> {
  const { apiUrl, callersUrl, tokenFile, shownTokenFile, operate, environment } = options;
  begin("Token", "looking for one that works");
  const { token, made } = await ensureDemoToken(apiUrl, tokenFile, environment);
  say("Token", `${made} in ${shownTokenFile}`);
  const link = `${callersUrl}/playground${await signInCode(environment, token)}`;
  printBox("Serpmill is running", [
    ["API", callersUrl],
    ["Token", token],
    ["Reference", `${callersUrl}/docs`],
    ["Account", `${callersUrl}/billing`],
    ["Playground", `${callersUrl}/playground`],
    ["Agents", `${callersUrl}/mcp?names=plain`],
  ]);
  print(`\nSearch in a browser. The link signs in once, within ${signInCodeMinutes} minutes:\n  ${link}`);
  const curl = searchCode("curl", callersUrl, { keyword: "best coffee beans" }).replace("$SERPMILL_TOKEN", token);
  print(`\nRun a search:\n  ${curl.replaceAll("\n", "\n  ")}`);
  print("\nWithout the link, the account and the playground ask for the token.");
  print(`\nOperator's commands:\n  ${operate}\n`);
}

/**
 * Returns the token in `tokenFile` if it works with this database, and grants its organization credit if that is nearly spent.
 * Otherwise it creates an organization with credit and stores its token there. So a second start prints the same curl line, the
 * line always works, and the account keeps its searches.
 */
async function ensureDemoToken(
  apiUrl: string,
  tokenFile: string,
  environment: NodeJS.ProcessEnv,
): Promise<{ token: string; made: string }> {
  const stored = (await readFile(tokenFile, "utf8").catch(() => "")).trim();
  const balanceMils = stored === "" ? undefined : await readBalance(apiUrl, stored);
  if (balanceMils !== undefined && balanceMils >= balanceMilsMin)
    return { token: stored, made: "reused from the last start," };
  if (balanceMils !== undefined) {
    const { orgId } = found.parse(await admin(environment, ["token", "find", "-"], stored));
    await admin(environment, ["credit", "grant", orgId, String(creditMils), "--reason", "npm start"]);
    return { token: stored, made: `reused, with ${creditMils} mils of new credit,` };
  }
  const terms = ["--name", "Demo", "--token-name", "npm start", "--plan", "free", "--credit", String(creditMils)];
  const { token } = created.parse(await admin(environment, ["org", "create", ...terms]));
  await rm(tokenFile, { force: true }); // A new file gets the mode below, whatever the old one had.
  await writeFile(tokenFile, `${token}\n`, { mode: 0o600 });
  return { token, made: "created with a new organization, stored" };
}

/** @returns undefined if the token does not work. */
async function readBalance(apiUrl: string, token: string): Promise<number | undefined> {
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await fetch(`${apiUrl}/v1/usage`, { headers, signal: AbortSignal.timeout(requestTimeoutMs) });
  if (answer.ok) return usage.parse(await answer.json()).creditBalanceMils;
  if (answer.status === 401) return undefined;
  if (answer.status === 429) return Number.POSITIVE_INFINITY; // Only a valid token is rate limited.
  throw new Error(`GET /v1/usage answered ${answer.status}: ${await answer.text()}`);
}

/** Runs one of the operator's commands. @param input what it reads from stdin. */
async function admin(environment: NodeJS.ProcessEnv, args: readonly string[], input = ""): Promise<unknown> {
  const started = { env: environment, timeout: commandTimeoutMs };
  const running = promisify(execFile)(process.execPath, [adminFile, ...args], started);
  running.child.stdin?.end(input);
  return JSON.parse((await running).stdout);
}

async function signInCode(environment: NodeJS.ProcessEnv, token: string): Promise<string> {
  return withRedis(environment, "warn", (redis) => createSignInCode(redis, hashToken(token).toString("hex")));
}

/** The addresses of the containers of deploy/quick.yml by default. */
async function welcomeToContainers(): Promise<void> {
  const { values: given } = parseArgs({
    options: {
      api: { type: "string", default: "http://api:3000" },
      ops: { type: "string", default: "http://api:3001" },
      callers: { type: "string", default: "http://127.0.0.1:3000" },
      "token-file": { type: "string", default: "/tmp/token" },
    },
  });
  await waitUntilWorkerIsSeen(given.ops);
  await welcome({
    apiUrl: given.api,
    callersUrl: given.callers,
    tokenFile: given["token-file"],
    shownTokenFile: "the volume token",
    operate: "docker compose -f deploy/quick.yml exec api node commands/main.ts --help",
    environment: process.env,
  });
}

if (import.meta.main) {
  try {
    await welcomeToContainers();
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
