/** The organization and token that `npm start` prints a curl line for. */
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";

const creditMils = 1_000;
const balanceMilsMin = 100; // Enough for a few searches on any likely plan.
const commandTimeoutMs = 30_000;
const requestTimeoutMs = 5_000;
const adminFile = join(import.meta.dirname, "..", "commands", "main.ts");

const created = z.object({ token: z.string() });
const usage = z.object({ creditBalanceMils: z.number() });

/**
 * Returns the token in `tokenFile` if it works with this database and has credit left. Otherwise it creates an organization
 * with credit and stores its token there. So a second start prints the same curl line, and the line always works.
 */
export async function ensureDemoToken(
  apiUrl: string,
  tokenFile: string,
  environment: NodeJS.ProcessEnv,
): Promise<{ token: string; isNew: boolean }> {
  const stored = (await readFile(tokenFile, "utf8").catch(() => "")).trim();
  if (stored !== "" && (await canSearch(apiUrl, stored))) return { token: stored, isNew: false };
  const { token } = await createOrganization(environment);
  await rm(tokenFile, { force: true }); // A new file gets the mode below, whatever the old one had.
  await writeFile(tokenFile, `${token}\n`, { mode: 0o600 });
  return { token, isNew: true };
}

async function canSearch(apiUrl: string, token: string): Promise<boolean> {
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await fetch(`${apiUrl}/v1/usage`, { headers, signal: AbortSignal.timeout(requestTimeoutMs) });
  if (answer.ok) return usage.parse(await answer.json()).creditBalanceMils >= balanceMilsMin;
  if (answer.status === 401) return false;
  if (answer.status === 429) return true; // Only a valid token is rate limited.
  throw new Error(`GET /v1/usage answered ${answer.status}: ${await answer.text()}`);
}

async function createOrganization(environment: NodeJS.ProcessEnv): Promise<z.infer<typeof created>> {
  const args = [adminFile, "org", "create", "--name", "Demo", "--plan", "free", "--credit", String(creditMils)];
  const started = { env: environment, timeout: commandTimeoutMs };
  const { stdout } = await promisify(execFile)(process.execPath, args, started);
  return created.parse(JSON.parse(stdout));
}
