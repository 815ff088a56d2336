import type { Redis } from "ioredis";
import { execPipeline } from "../redis/pipeline.ts";
import { Script } from "../redis/script.ts";
import { keysOf } from "./redis-keys.ts";

/** What the API asks about open holds, besides admission: whether they exist, and whether their mils are free by now. */

const freeDecidedScript = Script.endingWork(
  "freeDecided",
  new URL("token-hold.lua", import.meta.url),
  new URL("free-decided.lua", import.meta.url),
);

export const defineOpenHoldScripts = (redis: Redis) => freeDecidedScript.define(redis);

/** Reads which of these searches have an open hold, in one round trip. @returns their request ids. */
export async function whichHoldsExist(
  redis: Redis,
  searches: readonly { organizationId: string; requestId: string }[],
): Promise<Set<string>> {
  if (searches.length === 0) return new Set();
  const pipeline = redis.pipeline();
  for (const { organizationId, requestId } of searches) pipeline.hexists(keysOf(organizationId).holds, requestId);
  const replies = await execPipeline(pipeline);
  return new Set(searches.filter((_, at) => replies[at] === 1).map(({ requestId }) => requestId));
}

/** Lists the open holds of an organization that hold mils. There are at most as many as its plan allows in flight. */
export async function listHoldsWithMils(
  redis: Redis,
  organizationId: string,
): Promise<{ requestIds: string[]; heldMils: number }> {
  const { held = "0", ...holds } = await redis.hgetall(keysOf(organizationId).holds);
  const requestIds = Object.keys(holds).filter((requestId) => !holds[requestId]?.startsWith("0:"));
  return { requestIds, heldMils: Number(held) };
}

/** Lists the searches that hold mils against the limits of a token, also those whose hold has ended and left them. */
export async function listHoldsOfToken(
  redis: Redis,
  organizationId: string,
  tokenId: string,
): Promise<{ requestIds: string[]; heldMils: number }> {
  const tokens = await redis.hgetall(keysOf(organizationId).tokens);
  const requestIds = Object.keys(tokens).filter((field) => tokens[field]?.endsWith(`:${tokenId}`));
  return { requestIds, heldMils: Number(tokens[`held:${tokenId}`] ?? 0) };
}

/** Frees the mils of holds whose searches are decided in this version of the balance or before. The holds stay open. */
export async function freeDecidedHolds(
  redis: Redis,
  organizationId: string,
  version: number,
  requestIds: readonly string[],
): Promise<void> {
  const { balance, holds, tokens } = keysOf(organizationId);
  await freeDecidedScript.run(redis, [balance, holds, tokens], [version, ...requestIds]);
}
