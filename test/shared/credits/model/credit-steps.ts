import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { readUsage } from "../../../../shared/credits/holds.ts";
import { readCredit } from "../../../../shared/credits/ledger.ts";
import { listHoldsOfToken, listHoldsWithMils } from "../../../../shared/credits/open-holds.ts";
import { milsIn, payerLimitsOf } from "./limits-model.ts";
import { organizationAt, redisModelOf } from "./model.ts";
import { heldMilsOf, knowsSpending, tokenHeldMilsOf } from "./redis-model.ts";
import { creditMessage, deliver, organization } from "./redis-steps.ts";
import { steps } from "./step.ts";

const payer = { organization, token: fc.nat(1) };

/**
 * Reads the credit of a payer from Postgres, and which of the searches that hold its mils are decided, as an API does before
 * it refuses a search. What it sends to Redis may arrive long after newer messages.
 */
export const checkCredit = steps(
  "check credit",
  fc.record({ ...payer, scope: fc.constantFrom("organization" as const, "token" as const), late: fc.boolean() }),
  async (model, real, { organization: at, token, scope, late }) => {
    const { id, tokenIds } = organizationAt(model, at);
    const tokenId = tokenIds[token] ?? "";
    const redisModel = redisModelOf(model, id);
    const { holds, tokenHolds } = redisModel;
    const ofToken = [...tokenHolds].flatMap(([requestId, hold]) => (hold.tokenId === tokenId ? [requestId] : []));
    const withMils = [...holds].flatMap(([requestId, { mils }]) => (mils > 0 ? [requestId] : []));
    const held =
      scope === "token" ? await listHoldsOfToken(real.redis, id, tokenId) : await listHoldsWithMils(real.redis, id);
    const requestIds = (scope === "token" ? ofToken : withMils).toSorted();
    const heldMils = scope === "token" ? tokenHeldMilsOf(redisModel, tokenId) : heldMilsOf(redisModel);
    deepStrictEqual({ ...held, requestIds: held.requestIds.toSorted() }, { requestIds, heldMils });
    const credit = await readCredit(real.database, id, { tokenId, requestIds });
    const frees = requestIds.filter((requestId) => model.postgres.decided.has(requestId));
    const message = { ...creditMessage(model, id, tokenId), frees };
    const { balance, tokens } = message;
    deepStrictEqual(credit && { ...credit, decided: credit.decided.toSorted() }, {
      balance,
      token: tokens[0],
      decided: frees,
    });
    model.history.push(`read version ${balance.version} of ${id}, ${frees.length} decided`);
    if (late) model.messagesInFlight.push(message);
    else await deliver(model, real, message);
  },
);

export const usage = steps(
  "usage",
  fc.record({ ...payer, tokenTaken: fc.boolean() }),
  async (model, real, { organization: at, token, tokenTaken }) => {
    const { id, plan, tokenIds } = organizationAt(model, at);
    const tokenId = tokenIds[token] ?? "";
    const redisModel = redisModelOf(model, id);
    const { balance, tokens, holds } = redisModel;
    const limits = payerLimitsOf(model.postgres, { organizationId: id, tokenId });
    const limited = !tokenTaken && redisModel.used >= plan.windowLimit;
    if (!tokenTaken && !limited) redisModel.used += 1;
    const outcome = limited ? "limited" : knowsSpending(redisModel, limits) ? "read" : "balance_missing";
    const heldMils = heldMilsOf(redisModel);
    const availableMils = outcome === "read" ? Math.max(0, (balance?.balanceMils ?? 0) - heldMils) : 0;
    const {
      window,
      creditState,
      spent,
      version: seen,
      ...answer
    } = await readUsage(real.redis, { organizationId: id, plan, limits }, tokenTaken);
    real.met(`usage: ${answer.outcome}`);
    deepStrictEqual({ ...answer, used: window.used }, { outcome, availableMils, used: redisModel.used });
    deepStrictEqual(seen, limited ? 0 : (balance?.version ?? 0));
    if (outcome !== "read") return deepStrictEqual([creditState, spent], [undefined, undefined]);
    const { balanceMils, version } = balance ?? {};
    deepStrictEqual(creditState, { balanceMils, version, heldMils, searchesInFlight: holds.size });
    const ofOrganization = limits?.organization ? milsIn(balance?.spending ?? "") : 0;
    const ofToken = limits?.token ? milsIn(tokens.get(tokenId)?.spending ?? "") : 0;
    deepStrictEqual(spent, {
      organization: { day: ofOrganization, month: ofOrganization, heldMils },
      token: { day: ofToken, month: ofToken, heldMils: limits?.token ? tokenHeldMilsOf(redisModel, tokenId) : 0 },
    });
  },
);
