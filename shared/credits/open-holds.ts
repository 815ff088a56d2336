import type { Redis } from "ioredis";
import { execPipeline } from "../redis/connect.ts";
import { Script } from "../redis/script.ts";
import { holdIndexKey, keysOf, openOrganizationsKey } from "./redis-keys.ts";

/**
 * Open holds: which exist, which are overdue, and whose mils are free by now. Their index is a sorted set of
 * `organization|request id|hash of the Idempotency-Key`, by deadline. admit.lua and settle.lua keep it together with the holds,
 * so what the sweeper and the gauges cost depends on the open holds and not on the number of organizations.
 */

const entriesPerPage = 1_000;

const freeDecidedScript = Script.endingWork(
  "freeDecided",
  new URL("token-hold.lua", import.meta.url),
  new URL("free-decided.lua", import.meta.url),
);

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

/** Counts the open holds of each of these organizations, in one round trip. @throws if Redis does not answer. */
export async function countOpenHolds(redis: Redis, organizationIds: readonly string[]): Promise<number[]> {
  const pipeline = redis.pipeline();
  for (const organizationId of organizationIds) pipeline.hlen(keysOf(organizationId).holds);
  // One field is the sum of what they hold.
  return (await execPipeline(pipeline)).map((fields) => Math.max(0, Number(fields) - 1));
}

/** Lists the open holds of an organization that hold mils. There are at most as many as its plan allows in flight. */
export async function listHoldsWithMils(
  redis: Redis,
  organizationId: string,
): Promise<{ requestIds: string[]; heldMils: number }> {
  const { held = "0", ...holds } = await redis.hgetall(keysOf(organizationId).holds);
  // `00` marks a hold whose caller disconnected: it has no mils either.
  const requestIds = Object.keys(holds).filter((requestId) => !/^0+:/.test(holds[requestId] ?? ""));
  return { requestIds, heldMils: Number(held) };
}

/** Lists the searches that hold mils against the limits of a token. */
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

/** An open hold, as the index names it. */
export interface IndexedHold {
  organizationId: string;
  requestId: string;
  keyHash: string | undefined;
}

export const indexEntryOf = (hold: { organizationId: string; requestId: string; keyHash: string }) =>
  `${hold.organizationId}|${hold.requestId}|${hold.keyHash}`;

export function readIndexEntry(entry: string): IndexedHold {
  const [organizationId = "", requestId = "", keyHash] = entry.split("|");
  return { organizationId, requestId, keyHash: keyHash || undefined };
}

/** Reads at most `limit` holds, oldest deadline first, that are open for `graceMs` after it. Leaves the first `skip` out. */
export async function findOverdueHolds(
  redis: Redis,
  { graceMs, skip = 0, limit }: { graceMs: number; skip?: number; limit: number },
): Promise<IndexedHold[]> {
  const [seconds, microseconds] = await redis.time();
  const latestMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - graceMs;
  const entries = await redis.zrange(holdIndexKey, "-inf", `(${latestMs}`, "BYSCORE", "LIMIT", skip, limit);
  return entries.map(readIndexEntry);
}

/** The number of open holds, and the mils that their organizations hold. Holds that come and go meanwhile may be missed. */
export async function readOpenHolds(redis: Redis): Promise<{ open: number; heldMils: number }> {
  const organizationIds = new Set<string>();
  let open = 0;
  let heldMils = 0;
  for (;;) {
    const page = await redis.zrange(holdIndexKey, open, `${open + entriesPerPage - 1}`);
    const pipeline = redis.pipeline();
    for (const { organizationId } of page.map(readIndexEntry)) {
      if (organizationIds.has(organizationId)) continue;
      organizationIds.add(organizationId);
      pipeline.hget(keysOf(organizationId).holds, "held");
    }
    for (const held of await execPipeline(pipeline)) heldMils += Number(held ?? 0);
    open += page.length;
    if (page.length < entriesPerPage) return { open, heldMils };
  }
}

/** The number of organizations with open holds. @throws if Redis does not answer. */
export const countOpenOrganizations = (redis: Redis): Promise<number> => redis.scard(openOrganizationsKey);
