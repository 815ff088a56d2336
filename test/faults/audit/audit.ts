import type { Service } from "../../harness/processes/service.ts";
import { countCharges, isStanding } from "./accounts.ts";
import { answersInDoubt, answersWithoutCharge, lateAnswers, unequalAnswers, unfoundedDoubt } from "./answers.ts";
import {
  chargedErrors,
  chargesBeforeResults,
  chargesWithoutAnswer,
  keysAskedAgain,
  keysChargedTwice,
  keysWithoutAnswer,
} from "./charges.ts";
import type { Evidence } from "./evidence.ts";

/**
 * The auditor. Once all is at rest, it compares the answers that callers got, the provider's calls and the ledger. It knows the
 * promises of the service, and nothing about the implementation.
 */

export interface Totals {
  charged: number;
  refunded: number;
  reversed: number;
  /** Answers that arrived and whose charges were reversed, because the API was killed before it could confirm the delivery. */
  inDoubt: number;
  /** Pages that the provider returned for keywords without a charge. */
  unpaidPages: number;
}

/** @returns a sentence for every broken promise. */
export const audit = (evidence: Evidence): string[] =>
  [
    answersWithoutCharge,
    unequalAnswers,
    unfoundedDoubt,
    lateAnswers,
    chargedErrors,
    chargesWithoutAnswer,
    chargesBeforeResults,
    keysAskedAgain,
    keysChargedTwice,
    keysWithoutAnswer,
  ].flatMap((check) => check(evidence));

export function totalsOf(evidence: Evidence): Totals {
  const accounts = [...evidence.accounts.byRequest.values()];
  const charged = accounts.filter(isStanding).length;
  const paid = new Set(
    evidence.attempts.flatMap(({ keyword, answer }) => {
      const account = evidence.accounts.byRequest.get(answer?.requestId ?? "");
      return account && isStanding(account) ? keyword : [];
    }),
  );
  return {
    charged,
    refunded: accounts.filter(({ decided }) => decided === "refund").length,
    reversed: accounts.filter(({ reversedFor }) => reversedFor !== undefined).length,
    inDoubt: new Set(answersInDoubt(evidence).map(({ answer }) => answer?.requestId)).size,
    unpaidPages: evidence.providerCalls.filter((call) => Number.isFinite(call.answeredAtMs) && !paid.has(call.keyword))
      .length,
  };
}

/** What `npm run admin -- ledger verify` finds, as sentences. */
export async function ledgerViolations(service: Service): Promise<string[]> {
  const { violations } = await service.verify();
  return violations.map(({ rule, subject, found }) => `${rule}: ${subject}: ${found}`);
}

/** Checks that each answer is charged once and nothing else is, and that the ledger is right. */
export async function auditCharges(service: Service, organizationId: string, answers: number): Promise<string[]> {
  const standing = await countCharges(service.database, organizationId);
  const wrong = standing === answers ? [] : [`${standing} charges stand for ${answers} answers`];
  return [...wrong, ...(await ledgerViolations(service))];
}
