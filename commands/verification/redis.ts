import type { Redis } from "ioredis";
import { z } from "zod";
import { indexEntryOf, readIndexEntry } from "../../shared/credits/open-holds.ts";
import { holdIndexKey, keysOf } from "../../shared/credits/redis-keys.ts";
import { readStoredBalances } from "../../shared/credits/stored-balances.ts";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf } from "../../shared/database/row.ts";
import { pagesOfOrganizations } from "../../shared/organizations/organizations.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { Script } from "../../shared/redis/script.ts";
import type { Violation } from "./violations.ts";

const organizationsPerPage = 500;

const copyRule = "a balance in Redis equals Postgres' balance of that version";
const sumRule = "the held sum is the sum of the open holds";
const tokenRule = "a token's held sum is the sum of the open holds of its searches";
const overdueRule = "no hold is open after its deadline and the grace period";
const indexRule = "the index has exactly the open holds, each with its deadline";

/** At one moment. A full Redis still runs a script that only reads, and no transaction. */
const holdsScript = new Script("readHolds", new URL("read-holds.lua", import.meta.url));
/** Fields and values in turn. */
const hashReply = z.array(z.string()).transform((flat) => {
  const fields = flat.filter((_, at) => at % 2 === 0);
  return Object.fromEntries(fields.map((field, at) => [field, flat[2 * at + 1] ?? ""]));
});
const holdReply = z.tuple([hashReply, hashReply]);
const balanceRow = rowOf({ id: z.string(), balanceMils: z.number(), version: z.number() });

/**
 * Compares Redis with Postgres and with itself, while the service runs: a copy of a balance may be older than Postgres,
 * but never newer; a hold may be open, but never long after its deadline.
 */
export async function verifyRedis(database: Database, redis: Redis): Promise<Violation[]> {
  const found = await strayEntries(redis);
  for await (const ids of pagesOfOrganizations(database, organizationsPerPage))
    found.push(...(await violationsOfHolds(redis, ids)), ...(await impossibleCopies(database, redis, ids)));
  return found;
}

async function violationsOfHolds(redis: Redis, ids: readonly string[]): Promise<Violation[]> {
  const [seconds] = await redis.time();
  const latestMs = Number(seconds) * 1_000 - protocolTimes.overdueViolationAfterMs;
  const organizations = await Promise.all(ids.map((id) => readHolds(redis, id)));
  const open = organizations.flatMap(({ holds }) => holds);
  const wrongSums = organizations.flatMap(({ organizationId, heldMils, holds }) => {
    const sum = holds.reduce((mils, hold) => mils + hold.mils, 0);
    const found = `${heldMils} held, holds sum to ${sum}`;
    return sum === heldMils ? [] : [{ rule: sumRule, subject: organizationId, found }];
  });
  const overdue = open
    .filter((hold) => hold.deadlineMs < latestMs)
    .map(({ requestId, deadlineMs }) => {
      const deadline = new Date(deadlineMs).toISOString();
      return { rule: overdueRule, subject: requestId, found: `still open, its deadline was ${deadline}` };
    });
  const ofTokens = organizations.flatMap(wrongTokenSums);
  return [...wrongSums, ...ofTokens, ...overdue, ...(await unindexedHolds(redis, open))];
}

interface OpenHold {
  organizationId: string;
  requestId: string;
  mils: number;
  /** By Redis' clock. */
  deadlineMs: number;
  keyHash: string;
}

async function readHolds(redis: Redis, organizationId: string) {
  const keys = keysOf(organizationId);
  const read = await holdsScript.run(redis, [keys.holds, keys.tokens], []);
  const [{ held = "0", ...hash }, tokens] = holdReply.parse(read);
  const holds = Object.entries(hash).map(([requestId, hold]): OpenHold => {
    const [mils, deadlineMs, keyHash = ""] = hold.split(":");
    return { organizationId, requestId, mils: Number(mils), deadlineMs: Number(deadlineMs), keyHash };
  });
  return { organizationId, heldMils: Number(held), holds, tokens };
}

function wrongTokenSums({ tokens, holds }: Awaited<ReturnType<typeof readHolds>>): Violation[] {
  const open = new Set(holds.map(({ requestId }) => requestId));
  const sums = new Map<string, number>();
  for (const [requestId, hold] of Object.entries(tokens)) {
    const [, mils, tokenId] = /^(\d+):(tok_.*)$/.exec(hold) ?? [];
    if (tokenId && open.has(requestId)) sums.set(tokenId, (sums.get(tokenId) ?? 0) + Number(mils));
  }
  const named = Object.keys(tokens).flatMap((field) =>
    field.startsWith("held:") ? [field.slice("held:".length)] : [],
  );
  return [...new Set([...sums.keys(), ...named])].flatMap((tokenId) => {
    const [held, sum] = [Number(tokens[`held:${tokenId}`] ?? 0), sums.get(tokenId) ?? 0];
    return held === sum ? [] : [{ rule: tokenRule, subject: tokenId, found: `${held} held, holds sum to ${sum}` }];
  });
}

/** Redis is read before Postgres, so a copy that is newer than Postgres cannot be right. */
async function impossibleCopies(database: Database, redis: Redis, ids: string[]): Promise<Violation[]> {
  const copies = await readStoredBalances(redis, ids);
  const text = "select id, balance_mils, version from organizations where id = any($1) order by id";
  const { rows } = await database.query(text, [ids]);
  return rows.flatMap((row): Violation[] => {
    const truth = balanceRow.parse(row);
    const copy = copies.get(truth.id);
    if (!copy || copy.version < truth.version) return [];
    if (copy.version === truth.version && copy.balanceMils === truth.balanceMils) return [];
    const found = `Redis ${copy.balanceMils} of version ${copy.version}, Postgres ${truth.balanceMils} of ${truth.version}`;
    return [{ rule: copyRule, subject: truth.id, found }];
  });
}

/**
 * The open holds without an entry in the index, or with another deadline in it. A hold and its entry are written and deleted in
 * one step. So a hold that still exists at the second look lacked its entry at the first.
 */
async function unindexedHolds(redis: Redis, open: readonly OpenHold[]): Promise<Violation[]> {
  const deadlines = await Promise.all(open.map((hold) => redis.zscore(holdIndexKey, indexEntryOf(hold))));
  const missing = open.filter(({ deadlineMs }, at) => Number(deadlines[at]) !== deadlineMs);
  const isOpen = await Promise.all(missing.map((hold) => hasHold(redis, hold)));
  return missing
    .filter((_, at) => isOpen[at])
    .map(({ requestId }) => ({
      rule: indexRule,
      subject: requestId,
      found: "open, but not in the index with its deadline",
    }));
}

async function strayEntries(redis: Redis): Promise<Violation[]> {
  const entries = await redis.zrange(holdIndexKey, 0, "-1");
  const isOpen = await Promise.all(entries.map((entry) => hasHold(redis, readIndexEntry(entry))));
  const stray = entries.filter((_, at) => !isOpen[at]);
  const deadlines = await Promise.all(stray.map((entry) => redis.zscore(holdIndexKey, entry)));
  return stray
    .filter((_, at) => deadlines[at] !== null)
    .map((entry) => ({
      rule: indexRule,
      subject: readIndexEntry(entry).requestId,
      found: "in the index, but not open",
    }));
}

async function hasHold(redis: Redis, { organizationId, requestId }: Pick<OpenHold, "organizationId" | "requestId">) {
  return (await redis.hexists(keysOf(organizationId).holds, requestId)) === 1;
}
