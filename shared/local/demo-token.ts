/** The organization and token that `npm start` prints a curl line for. */
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";

const creditMils = 1_000;
const balanceMilsMin = 100; // A few searches on any plan that an operator is likely to try.
const commandTimeoutMs = 30_000;
const requestTimeoutMs = 5_000;
const adminFile = join(import.meta.dirname, "..", "admin.ts");

const created = z.object({ token: z.string() });
const usage = z.object({ creditBalanceMils: z.number() });

/**
 * The token kept in `tokenFile`, if it still works with this database and has credits left; else that of a new
 * organization with credits, which is kept instead. So a second start prints the same line, and the line always works.
 */
export async function ensureDemoToken(
  apiUrl: string,
  tokenFile: string,
  environment: NodeJS.ProcessEnv,
): Promise<{ token: string; isNew: boolean }> {
  const kept = (await readFile(tokenFile, "utf8").catch(() => "")).trim();
  if (kept !== "" && (await canSearch(apiUrl, kept))) return { token: kept, isNew: false };
  const { token } = await createOrganization(environment);
  await rm(tokenFile, { force: true }); // A file made anew has the mode below, whatever the old one had.
  await writeFile(tokenFile, `${token}\n`, { mode: 0o600 });
  return { token, isNew: true };
}

async function canSearch(apiUrl: string, token: string): Promise<boolean> {
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await fetch(`${apiUrl}/v1/usage`, { headers, signal: AbortSignal.timeout(requestTimeoutMs) });
  if (answer.ok) return usage.parse(await answer.json()).creditBalanceMils >= balanceMilsMin;
  if (answer.status === 401) return false;
  if (answer.status === 429) return true; // Asked too often, which only a token that works can be.
  throw new Error(`GET /v1/usage answered ${answer.status}: ${await answer.text()}`);
}

async function createOrganization(environment: NodeJS.ProcessEnv): Promise<z.infer<typeof created>> {
  const args = [adminFile, "org", "create", "--name", "Demo", "--plan", "free", "--credit", String(creditMils)];
  const started = { env: environment, timeout: commandTimeoutMs };
  const { stdout } = await promisify(execFile)(process.execPath, args, started);
  return created.parse(JSON.parse(stdout));
}
