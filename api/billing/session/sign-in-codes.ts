import { hash, randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { orRedisUnavailable } from "../../datastore-unavailable.ts";
import { signInCodeKeyOf as keyOf } from "./session-keys.ts";

/**
 * Codes that sign a browser in once, in place of a token. Only a process that writes to Redis can create one: no request does. The code
 * is in the fragment of a link, which browsers send to no server and no other site. Redis stores the hash of the token under the hash of
 * the code.
 */

const codeBytes = 32;
const codeForm = /^[\w-]{43}$/;
export const signInCodeMinutes = 10;

const hashCode = (code: string) => hash("sha256", code);

/** Creates a code for a token. @returns the end of a link to any account page. */
export async function createSignInCode(redis: Redis, tokenHash: string): Promise<string> {
  const code = randomBytes(codeBytes).toString("base64url");
  await redis.set(keyOf(hashCode(code)), tokenHash, "EX", signInCodeMinutes * 60);
  return `#sign-in=${code}`;
}

/**
 * Uses a code up: of concurrent calls one gets the token's hash. If the process dies right after, the code is lost, and the person signs
 * in with the token. @returns undefined if it was used, has expired or never was. @throws {CallerError} `unavailable` without Redis.
 */
export async function redeemSignInCode(redis: Redis, code: string): Promise<string | undefined> {
  if (!codeForm.test(code)) return undefined;
  return (await orRedisUnavailable(redis.getdel(keyOf(hashCode(code))))) ?? undefined;
}
