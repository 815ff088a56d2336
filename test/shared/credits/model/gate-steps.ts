import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import {
  admit,
  findOverdueHolds,
  readOverdueHolds,
  readRemembered,
  readUsage,
  settleHolds,
} from "../../../../shared/credits/holds.ts";
import { readBalance } from "../../../../shared/credits/ledger.ts";
import { readPaidKey } from "../../../../shared/credits/paid-keys.ts";
import { keyOf, balanceOf } from "./books.ts";
import { admitInGate, emptyGate, heldMilsOf, type Message, settleInGate } from "./gate.ts";
import { decideCall, type WantedEnding } from "./ledger-calls.ts";
import { callAlone } from "./ledger-steps.ts";
import { gateOf, type Money, newsOf, organizationAt, type Real, redisKeysOf, searchOf, searchWish } from "./money.ts";
import { steps } from "./step.ts";

const organization = fc.nat(1);
const budgetMs = 3_600_000;
// A hold with no time at all counts as overdue at once, one with an hour only at the end of the run.
const overdueNowMs = -1_000;
export const overdueAllMs = -2 * budgetMs;

export const admission = steps(
  "admit",
  fc.record({
    search: searchWish,
    closed: fc.nat(7).map((n) => n === 7),
    late: fc.nat(3).map((n) => n === 3),
    asksWhetherPaid: fc.boolean(),
    staysCold: fc.nat(7).map((n) => n === 7),
  }),
  async (money, real, given) => {
    const search = searchOf(money, given.search, ({ requestId: id }) => !money.books.decided.has(id));
    const { requestId, organizationId, key } = search;
    const decided = money.books.decided.get(requestId);
    // An admission can arrive twice, and late; but a search that ran was admitted before.
    if (decided?.kind === "charge" || decided?.reason === "already_paid") return;
    let { priceMils } = search;
    if (key && given.asksWhetherPaid) {
      const paid = await readPaidKey(real.database, organizationId, key.hash);
      deepStrictEqual(paid, money.books.paid.get(keyOf(organizationId, key.hash)));
      if (paid === key.fingerprint) priceMils = 0;
    }
    const gate = gateOf(money, organizationId);
    if (!gate.balance && !given.staysCold)
      await deliver(money, real, newsOf(organizationId, balanceOf(money.books, organizationId)));
    const foreseen = admitInGate(gate, search, { ...given, priceMils });
    const request = { ...search, priceMils, budgetMs: given.late ? 0 : budgetMs, closed: given.closed };
    const { window, ...answer } = await admit(real.redis, request);
    money.story.push(`admit ${requestId} for ${priceMils} mils: ${answer.outcome}`);
    real.met(`admit: ${answer.outcome}${priceMils === 0 ? " at no price" : ""}`);
    if ("deadlineAtMs" in answer) Reflect.deleteProperty(answer, "deadlineAtMs"); // Redis' clock is nothing to foresee.
    deepStrictEqual({ ...answer, used: window.used }, { ...foreseen, used: gate.used });
  },
);

export async function deliver(money: Money, real: Real, message: Message): Promise<void> {
  const { organizationId, balance, ends } = message;
  const ended = ends.map(
    ({ requestId, answer, failure }) => `${requestId} ${answer?.toString() ?? failure ?? "freed"}`,
  );
  money.story.push(
    `deliver ${balance.balanceMils} mils of version ${balance.version} to ${organizationId}: ${ended.join("; ")}`,
  );
  const foreseen = settleInGate(gateOf(money, organizationId), message);
  const reply = await settleHolds(real.redis, organizationId, balance, ends);
  deepStrictEqual(readRemembered(reply), foreseen);
}

export const delivery = steps(
  "deliver",
  fc.record({
    message: fc.integer({ min: -4, max: 9 }), // Below 0: the newest, so that answers arrive while they are of use.
    afterwards: fc.constantFrom("forget" as const, "forget" as const, "keep" as const, "lose instead" as const),
  }),
  async (money, real, { message: at, afterwards }) => {
    const message = money.bag.at(Math.max(-1, at) % Math.max(1, money.bag.length));
    if (!message) return;
    if (afterwards !== "keep") money.bag.splice(money.bag.indexOf(message), 1);
    if (afterwards === "lose instead") {
      money.lossy.add(message.organizationId);
      money.story.push(`lose version ${message.balance.version} to ${message.organizationId}`);
    } else await deliver(money, real, message);
    real.met(`deliver, then ${afterwards}`);
  },
);

/** Reads a balance, which is written whenever its message comes: perhaps long after newer ones. */
export const seed = steps("read balance", organization, async (money, real, at) => {
  const { id } = organizationAt(money, at);
  const balance = balanceOf(money.books, id);
  deepStrictEqual(await readBalance(real.database, id), balance);
  money.story.push(`read version ${balance.version} of ${id}`);
  money.bag.push(newsOf(id, balance));
});

export const usage = steps(
  "usage",
  fc.record({ organization, tokenTaken: fc.boolean() }),
  async (money, real, { organization: at, tokenTaken }) => {
    const { id, plan } = organizationAt(money, at);
    const gate = gateOf(money, id);
    const limited = !tokenTaken && gate.used >= plan.windowLimit;
    if (!tokenTaken && !limited) gate.used += 1;
    const availableMils = limited || !gate.balance ? 0 : Math.max(0, gate.balance.balanceMils - heldMilsOf(gate));
    const outcome = limited ? "limited" : gate.balance ? "read" : "cold";
    const { window, creditState, ...answer } = await readUsage(real.redis, id, plan, tokenTaken);
    real.met(`usage: ${answer.outcome}`);
    deepStrictEqual({ ...answer, used: window.used }, { outcome, availableMils, used: gate.used });
    const told = { ...gate.balance, heldMils: heldMilsOf(gate), searchesInFlight: gate.holds.size };
    deepStrictEqual(creditState, outcome === "read" ? told : undefined);
  },
);

/** Looks for overdue holds and refunds them; what that sends to Redis goes into the bag like everything else. */
export async function sweepOne(money: Money, real: Real, organizationId: string, graceMs: number): Promise<void> {
  const gate = gateOf(money, organizationId);
  const expected = [...gate.holds]
    .filter(([, { late }]) => late || graceMs === overdueAllMs)
    .map(([requestId, { keyHash }]) => ({ requestId, keyHash: keyHash || undefined }));
  const pipeline = real.redis.pipeline();
  findOverdueHolds(pipeline, organizationId, graceMs);
  const [reply] = (await pipeline.exec()) ?? [];
  const { overdue, ...seen } = readOverdueHolds(reply?.[1]);
  deepStrictEqual(seen, { open: gate.holds.size, heldMils: heldMilsOf(gate) });
  deepStrictEqual(
    new Map(overdue.map((hold) => [hold.requestId, hold])),
    new Map(expected.map((hold) => [hold.requestId, hold])),
  );
  if (overdue.length === 0) return;
  const endings = overdue.map(({ requestId, keyHash }): WantedEnding => {
    const key = keyHash ? { hash: keyHash, fingerprint: "" } : undefined;
    return { organizationId, requestId, key, wanted: "refund", reason: "abandoned", ifCharged: "end_hold" };
  });
  await callAlone(money, real, decideCall(endings));
  money.story.push(`swept ${organizationId}`);
  real.met("sweep");
}

export const sweep = steps("sweep", organization, (money, real, at) =>
  sweepOne(money, real, organizationAt(money, at).id, overdueNowMs),
);

export const flush = steps("flush", organization, async (money, real, at) => {
  const { id } = organizationAt(money, at);
  money.gates.set(id, emptyGate());
  money.forgetful.add(id);
  real.seen.delete(id);
  await real.redis.del(...redisKeysOf(id));
  money.story.push(`flush ${id}`);
  real.met("flush");
});

export const save = steps("save", organization, async (money, real, at) => {
  const { id } = organizationAt(money, at);
  money.story.push(`save ${id}`);
  money.saved.set(id, structuredClone(gateOf(money, id)));
  const copies = redisKeysOf(id).map(async (key) => {
    const [bytes, expiresAtMs] = await Promise.all([real.redis.dumpBuffer(key), real.redis.pexpiretime(key)]);
    return bytes ? [{ key, bytes, expiresAtMs }] : [];
  });
  real.saved.set(id, (await Promise.all(copies)).flat());
});

export const restore = steps("restore", organization, async (money, real, at) => {
  const { id } = organizationAt(money, at);
  const gate = money.saved.get(id);
  if (!gate) return;
  money.gates.set(id, structuredClone(gate));
  money.forgetful.add(id);
  real.seen.delete(id);
  await real.redis.del(...redisKeysOf(id));
  for (const { key, bytes, expiresAtMs } of real.saved.get(id) ?? [])
    await real.redis.restore(key, Math.max(0, expiresAtMs), bytes, "ABSTTL");
  money.story.push(`restore ${id}`);
  real.met("restore");
});
