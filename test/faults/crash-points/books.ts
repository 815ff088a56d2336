import { z } from "zod";
import { keysOf } from "../../../shared/credits/holds.ts";
import { readBalance } from "../../../shared/credits/ledger.ts";
import { queueKeys } from "../../../shared/queue/search-queue.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { readAnswer } from "./caller.ts";
import type { CaseRun } from "./case-run.ts";

const priceMils = 5;
const quietMsMax = 60_000;
const confirmMsMax = 1_500;
const repairMsMax = 8_000;
const deathMsMax = 12_000;

/** Waits until nothing is in flight; a charge that no living API confirms is made old, so that it is given back. */
export async function comeToRest({ lane, customer }: CaseRun): Promise<void> {
  const { service } = lane;
  const { organizationId } = customer;
  const isIdle = async () => {
    const lists = await Promise.all([queueKeys.waiting, queueKeys.running].map((list) => service.redis.llen(list)));
    const { open, heldMils } = await service.holdsOf(organizationId);
    return lists.every((jobs) => jobs === 0) && open <= 0 && heldMils === 0;
  };
  await insist("no job and no hold", isIdle);
  const isConfirmed = async () => (await countUndelivered(service)) === 0;
  if (!(await becomes(isConfirmed, confirmMsMax))) {
    await service.age();
    await insist("no unconfirmed charge", isConfirmed);
  }
  await insist("no job and no hold in the end", isIdle);
}

async function insist(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  if (!(await becomes(isTrue, quietMsMax))) throw new Error(`${what}: not within ${quietMsMax} ms`);
}

/** Everything that does not balance, in sentences. @param lateMsMax how long after its deadline an answer may come. */
export async function audit(play: CaseRun, lateMsMax: number): Promise<{ broken: string[]; seen: string }> {
  const { lane } = play;
  // When all is quiet somebody may still have to die: the next caretaker, once the lease of the dead one is over.
  const deathsDue = play.case.apis.length + play.case.workers.length;
  await becomes(async () => play.deaths.length >= deathsDue, deathMsMax);
  await Promise.all(lane.places.map((place) => place.ready()));

  const found = await look(play);
  const broken = [
    ...deathsMissing(play, deathsDue),
    ...waits(play, lateMsMax),
    ...answers(play, found),
    ...(play.case.keyed ? await owed(play) : []),
    ...(await balances(play, found)),
    ...providerCalls(play, found),
    ...play.holds.broken,
    ...lane.places.flatMap((place) => place.defects()),
  ];
  const { violations } = await lane.service.verify();
  broken.push(...violations.map(({ rule, subject, found: what }) => `${rule}: ${subject}: ${what}`));
  const last = play.attempts.at(-1);
  const waitedMs = Math.max(0, ...play.attempts.map(({ tookMs }) => tookMs));
  const seen = [
    `${last?.status ?? "no answer"} at attempt ${play.attempts.length}`,
    `longest ${(waitedMs / 1_000).toFixed(1)} s`,
    `${found.standing} charged`,
    ...(found.inDoubt ? ["in_doubt: given back"] : []),
    `${lane.calls.length} calls, ${found.searches} searches`,
  ].join(", ");
  return { broken, seen };
}

interface Found {
  /** Charges that were not given back. */
  standing: number;
  searches: number;
  /** The requests that were charged. */
  charged: Set<string>;
  reversedFor: string[];
  inDoubt: boolean;
  /** The whole answers that callers have. */
  texts: string[];
}

async function look(play: CaseRun): Promise<Found> {
  const entries = await play.lane.service.ledgerOf(play.customer.organizationId);
  const reversals = entries.filter(({ kind }) => kind === "reversal");
  const charges = entries.filter(({ kind }) => kind === "charge");
  const texts = play.attempts.flatMap(({ status, text }) => (status === 200 && text !== undefined ? [text] : []));
  return {
    standing: charges.length - reversals.length,
    searches: charges.length + entries.filter(({ kind }) => kind === "refund").length,
    charged: new Set(charges.map(({ requestId }) => requestId)),
    reversedFor: reversals.map(({ reason }) => reason),
    inDoubt: texts.length > 0 && reversals.some(({ reason }) => reason === "undelivered"),
    texts,
  };
}

function deathsMissing(play: CaseRun, due: number): string[] {
  const accidents = play.accidents.map(
    ({ place, signal, said }) => `${place.kind} ${place.number} ended with ${signal}: ${said.slice(0, 300)}`,
  );
  if (play.deaths.length === due) return accidents;
  const where = play.deaths.map(({ point }) => `${point.step}:${point.edge}`).join(", ");
  return [...accidents, `${play.deaths.length} of ${due} processes died where they should: ${where || "none"}`];
}

function waits({ attempts, lane }: CaseRun, lateMsMax: number): string[] {
  return attempts
    .filter(({ tookMs }) => tookMs > lane.deadlineMs + lateMsMax)
    .map(({ tookMs, status }) => `a caller waited for ${Math.round(tookMs)} ms (${status ?? "no answer"})`);
}

/** What callers have, against what they paid. */
function answers(play: CaseRun, { texts, standing, charged, reversedFor }: Found): string[] {
  const { ends, keyed } = play.case;
  const broken: string[] = [];
  const isAnswered = texts.length > 0;
  if (isAnswered !== (ends !== "unanswered")) {
    const statuses = play.attempts.map(({ status }) => status ?? "no answer").join(", ");
    broken.push(`expected to end ${ends}: ${statuses}`);
  }
  const due = (isAnswered || keyed) && ends !== "in doubt" ? 1 : 0;
  if (standing !== due) broken.push(`${standing} charges stand for ${texts.length} answers`);
  if (new Set(texts).size > 1) broken.push("one key was answered in two ways");
  if (ends === "in doubt" && reversedFor.join() !== "undelivered") broken.push(`reversed for: ${reversedFor.join()}`);
  for (const { requestId, creditsCharged } of texts.map(readAnswer)) {
    // What was searched anew under a key that has paid is free.
    const cost = charged.has(requestId) ? priceMils : 0;
    if (creditsCharged !== cost) broken.push(`${requestId} says it cost ${creditsCharged} mils instead of ${cost}`);
  }
  return broken;
}

/** What was paid under a key is there for whoever asks again, byte for byte, for nothing. */
async function owed(play: CaseRun): Promise<string[]> {
  const { service, apis } = play.lane;
  const first = play.attempts.find(({ status }) => status === 200)?.text;
  const broken: string[] = [];
  for (const { url } of apis) {
    const response = await fetch(`${url}/v1/serp/search`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${play.customer.token}`,
        "content-type": "application/json",
        "idempotency-key": play.key ?? "",
      },
      body: JSON.stringify({ keyword: play.keyword }),
    });
    const text = await response.text();
    if (text !== first) broken.push(`its key brings ${response.status} ${text.slice(0, 200)}`);
    if (response.headers.get("idempotency-replayed") !== "true") broken.push("a repeat was searched anew");
  }
  const charges = (await service.ledgerOf(play.customer.organizationId)).filter(({ kind }) => kind === "charge");
  return charges.length > 1 ? [...broken, `${charges.length} charges under one key`] : broken;
}

const usageBody = z.object({ creditBalanceMils: z.number() });

/** What was granted less what stands, by Postgres, by Redis, and by every API. */
async function balances({ lane, customer, case: { plot } }: CaseRun, { standing }: Found): Promise<string[]> {
  const { organizationId, token, grantedMils } = customer;
  const expected = grantedMils - standing * priceMils;
  const { database, redis } = lane.service;
  const balance = await readBalance(database, organizationId);
  // Without a copy the next search makes one; but a caretaker that begins its work makes all of them.
  const copyOf = async () => {
    const copy = await redis.hget(keysOf(organizationId).balance, "balance");
    return copy === null && plot !== "caretaker starts" ? expected : Number(copy ?? Number.NaN);
  };
  // A copy that is older is made good by the reconciler's next rounds.
  await becomes(async () => (await copyOf()) === expected, repairMsMax);
  const copy = await copyOf();
  const usages = await Promise.all(
    lane.apis.map(async ({ url }) => {
      const response = await fetch(`${url}/v1/usage`, { headers: { authorization: `Bearer ${token}` } });
      return usageBody.parse(await response.json()).creditBalanceMils;
    }),
  );
  const told = { Postgres: balance?.balanceMils, Redis: copy, "API 0": usages[0], "API 1": usages[1] };
  return Object.entries(told)
    .filter(([, mils]) => mils !== expected)
    .map(([who, mils]) => `${who} says ${mils} mils instead of ${expected}`);
}

/** A provider is asked once for each search, again for each take-over, and once more where it failed. */
function providerCalls({ lane, deaths, twins, keyword }: CaseRun, { searches }: Found): string[] {
  const calls = lane.calls.filter((call) => call.keyword === keyword);
  const failed = calls.filter(({ answered }) => !answered).length;
  const takeOvers = twins.length + deaths.filter(({ death }) => death.place.kind === "worker").length;
  const most = searches + takeOvers + failed;
  return calls.length > most ? [`${calls.length} calls of the provider, at most ${most} expected`] : [];
}

async function countUndelivered(service: CaseRun["lane"]["service"]): Promise<number> {
  const { rows } = await service.database.query("select count(*) as open from undelivered");
  return Number(rows[0].open);
}
