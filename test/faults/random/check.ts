import { createHash } from "node:crypto";
import { z } from "zod";
import { type Account, readAccounts } from "./accounts.ts";
import type { Attempt } from "./callers.ts";
import { deadlineMs, priceMils, type Cluster } from "./cluster.ts";

/**
 * The offline check: what callers saw, what the provider was asked, and the ledger, held against each other once all is
 * quiet. Every sentence that it returns is a broken promise.
 */

// While Postgres is away an API goes on trying to confirm what it delivered; two faults in a row are over by then.
const confirmedMsMax = 20_000;

export interface Verdict {
  broken: string[];
  /** Answers that arrived and whose charge was given back all the same, because nobody lived to confirm them. */
  inDoubt: number;
  charged: number;
  refunded: number;
  reversed: number;
  /** Pages that the provider made and nobody paid for. */
  unpaidPages: number;
  latestMs: number;
}

/** @param lateMsMax how long after its deadline an answer may seem to come to this very process. */
export async function check(world: Cluster, attempts: readonly Attempt[], lateMsMax: number): Promise<Verdict> {
  const { accounts, paidKeyHashes } = await readAccounts(world.service.database);
  const standing = [...accounts].filter(([, { decided, reversedFor }]) => decided === "charge" && !reversedFor);
  const answered = attempts.filter(({ answer }) => answer?.status === 200);
  const doubtful = answered.filter(
    ({ answer }) => accounts.get(answer?.requestId ?? "")?.reversedFor === "undelivered",
  );
  const latestMs = Math.max(0, ...attempts.filter((one) => one.answer && !wasUnwell(world, one)).map(durationMs));
  const broken = [
    ...answered.flatMap((attempt) => unpaid(attempt, accounts)),
    ...unequal(answered),
    ...doubtful
      .filter((one) => !diedUnconfirmed(world, one))
      .map(({ answer }) => `${answer?.requestId} was delivered and given back, and no API had died`),
    ...attempts
      .filter(({ answer }) => answer && answer.status !== 200)
      .flatMap((one) => chargedForError(one, accounts)),
    ...chargedForNothing(world, attempts, accounts),
    ...unfounded(world, attempts, accounts),
    ...twiceUnderOneKey(answered, accounts),
    ...unfetched(answered, paidKeyHashes),
    ...attempts.flatMap((attempt) => late(world, attempt, lateMsMax)),
    ...(await wrongBalances(world, accounts)),
  ];
  return {
    broken,
    inDoubt: new Set(doubtful.map(({ answer }) => answer?.requestId)).size,
    charged: standing.length,
    refunded: [...accounts.values()].filter(({ decided }) => decided === "refund").length,
    reversed: [...accounts.values()].filter(({ reversedFor }) => reversedFor).length,
    unpaidPages:
      world.provider.asked.filter(({ answeredAtMs }) => answeredAtMs < Number.POSITIVE_INFINITY).length -
      standing.length,
    latestMs,
  };
}

const bodyOf = z.object({ creditsCharged: z.number(), query: z.object({ keyword: z.string() }) });

/** A 200 whose charge is missing, wrong, another's, or was given back for another reason than doubt. */
function unpaid(attempt: Attempt, accounts: Map<string, Account>): string[] {
  const { answer, customer, key } = attempt;
  if (!answer) return [];
  const told = `the answer of ${answer.requestId} (${attempt.keyword})`;
  const { creditsCharged, query } = bodyOf.parse(JSON.parse(answer.text));
  if (query.keyword !== attempt.keyword) return [`${told} is to another question: ${query.keyword}`];
  const account = accounts.get(answer.requestId);
  if (!account) return [`${told} has no deciding entry`];
  if (account.organizationId !== customer.organizationId) return [`${told} was decided for another organization`];
  if (account.decided === "refund") {
    const isFree = account.reason === "already_paid" && creditsCharged === 0 && key !== undefined;
    return isFree ? [] : [`${told} was delivered although it was refunded: ${account.reason}`];
  }
  if (creditsCharged !== priceMils || account.mils !== -priceMils) return [`${told} says ${creditsCharged} mils`];
  if (account.keyed !== (key !== undefined)) return [`${told} was charged as ${account.keyed ? "keyed" : "unkeyed"}`];
  const { reversedFor } = account;
  return reversedFor && reversedFor !== "undelivered" ? [`${told} was delivered and given back: ${reversedFor}`] : [];
}

/** The one case in the caller's favour: the API was killed after the last byte and before it could say so to Postgres. */
function diedUnconfirmed({ apis }: Cluster, { api, endedAtMs }: Attempt): boolean {
  return apis[api].killedAtMs.some(
    (killedAtMs) => killedAtMs > endedAtMs - 100 && killedAtMs < endedAtMs + confirmedMsMax,
  );
}

/** Answers with one request id that are not the same bytes. */
function unequal(answered: readonly Attempt[]): string[] {
  const byRequest = Map.groupBy(answered, ({ answer }) => answer?.requestId);
  return [...byRequest].flatMap(([requestId, same]) =>
    new Set(same.map(({ answer }) => answer?.text)).size === 1 ? [] : [`${requestId} was answered in two ways`],
  );
}

/** An error was told, and the charge stands; under a key that is owed, so only the others count. */
function chargedForError({ answer, key, keyword }: Attempt, accounts: Map<string, Account>): string[] {
  const account = accounts.get(answer?.requestId ?? "");
  if (!answer || account?.decided !== "charge" || account.reversedFor || key !== undefined) return [];
  return [`${answer.requestId} (${keyword}) was answered ${answer.status} and is charged`];
}

/**
 * Unkeyed charges that stand although no caller has the answer. That is so only where all bytes were handed to the
 * caller's socket and the caller was gone, which the API's log tells, or the API died before it could write that down.
 */
function chargedForNothing(world: Cluster, attempts: readonly Attempt[], accounts: Map<string, Account>): string[] {
  const known = new Set(attempts.map(({ answer }) => answer?.requestId));
  const logged = statusesByRequest(world);
  const orphans = [...accounts].filter(
    ([requestId, { decided, reversedFor, keyed }]) =>
      decided === "charge" && !reversedFor && !keyed && !known.has(requestId),
  );
  const undelivered = orphans.flatMap(([requestId]) => {
    const status = logged.get(requestId);
    return status === undefined || status === 200 ? [] : [`${requestId} is charged, and its API answered ${status}`];
  });
  const byCustomer = Map.groupBy(orphans, ([, { organizationId }]) => organizationId);
  const tooMany = world.customers.flatMap(({ organizationId }) => {
    const gone = attempts.filter(
      (one) => one.customer.organizationId === organizationId && one.key === undefined && couldNotReceive(world, one),
    );
    const found = byCustomer.get(organizationId)?.length ?? 0;
    return found > gone.length ? [`${organizationId}: ${found} charges for ${gone.length} callers that were gone`] : [];
  });
  return [...undelivered, ...tooMany];
}

/** Whether all bytes may have been handed to this caller's socket although it saw none of them. */
function couldNotReceive(world: Cluster, attempt: Attempt): boolean {
  return !attempt.answer && (attempt.noAnswer === "hung up" || wasUnwell(world, attempt));
}

function statusesByRequest({ apis }: Cluster): Map<string, number> {
  const lines = apis.flatMap((slot) => slot.processes.flatMap((process) => process.lines));
  return new Map(
    lines.filter(({ msg }) => msg === "request").map((line) => [String(line["requestId"]), Number(line["status"])]),
  );
}

/** Charges for answers that the provider had not given by then. */
function unfounded(world: Cluster, attempts: readonly Attempt[], accounts: Map<string, Account>): string[] {
  const given = Map.groupBy(world.provider.asked, ({ keyword }) => keyword);
  return attempts.flatMap(({ keyword, answer }) => {
    const account = accounts.get(answer?.requestId ?? "");
    if (account?.decided !== "charge") return [];
    const isFounded = given.get(keyword)?.some(({ answeredAtMs }) => answeredAtMs <= account.atMs + 1);
    return isFounded ? [] : [`"${keyword}" was charged before the provider had answered it`];
  });
}

function twiceUnderOneKey(answered: readonly Attempt[], accounts: Map<string, Account>): string[] {
  const byKey = Map.groupBy(
    answered.filter(({ key }) => key !== undefined),
    ({ key }) => key,
  );
  return [...byKey].flatMap(([key, same]) => {
    const charged = same.filter(({ answer }) => accounts.get(answer?.requestId ?? "")?.decided === "charge");
    const requestIds = new Set(charged.map(({ answer }) => answer?.requestId));
    return requestIds.size > 1 ? [`the key ${key} was charged ${requestIds.size} times`] : [];
  });
}

/** Keys that have paid, and nobody could fetch what for. */
function unfetched(answered: readonly Attempt[], paidKeyHashes: readonly string[]): string[] {
  const fetched = new Set(answered.map(({ key = "" }) => createHash("sha256").update(key).digest("hex")));
  return paidKeyHashes
    .filter((hash) => !fetched.has(hash))
    .map((hash) => `the key with the hash ${hash} paid for nothing`);
}

const durationMs = ({ sentAtMs, endedAtMs }: Attempt) => endedAtMs - sentAtMs;

/** An API that is frozen, or that its callers cannot reach, is not expected to answer in time. */
function wasUnwell(world: Cluster, { api, sentAtMs, endedAtMs }: Attempt): boolean {
  return world.apis[api].unwell.some(({ fromMs, toMs }) => fromMs < endedAtMs && toMs > sentAtMs);
}

function late(world: Cluster, attempt: Attempt, lateMsMax: number): string[] {
  const ms = Math.round(durationMs(attempt));
  if (ms <= deadlineMs + lateMsMax || wasUnwell(world, attempt)) return [];
  const found = attempt.answer ? `answered ${attempt.answer.status}` : `not answered (${attempt.noAnswer})`;
  return [`"${attempt.keyword}" was ${found} after ${ms} ms`];
}

/** The balance is what was granted less what is charged, and Redis and the API say so. */
async function wrongBalances(world: Cluster, accounts: Map<string, Account>): Promise<string[]> {
  const found: string[] = [];
  for (const { organizationId, token, grantedMils, kind } of world.customers) {
    const standing = [...accounts.values()].filter(
      (account) => account.organizationId === organizationId && account.decided === "charge" && !account.reversedFor,
    );
    const expected = grantedMils - standing.length * priceMils;
    const told = await world.balanceOf(token);
    if (told !== expected) found.push(`${organizationId} (${kind}) has ${told} mils and should have ${expected}`);
  }
  return found;
}
