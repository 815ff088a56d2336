import { z } from "zod";
import { type Attempt, durationMs, type Evidence, wasUnreachable } from "./evidence.ts";

/** Compares the answers that callers got with the ledger. Each function returns a sentence per broken promise. */

// While Postgres is unreachable an API retries its confirmations. Two faults in a row end within this time.
const confirmMsMax = 20_000;
// The end of the answer and the kill are not timed at once.
const clockToleranceMs = 100;

const answerBody = z.object({ creditsCharged: z.number(), query: z.object({ keyword: z.string() }) });

/** A 200 whose charge is missing, wrong, of another organization, or reversed for another reason than doubt. */
export const answersWithoutCharge = ({ attempts, accounts }: Evidence): string[] =>
  attempts.flatMap(({ answer, organizationId, keyword, key, priceMils }) => {
    if (answer?.status !== 200) return [];
    const subject = `the answer of ${answer.requestId} (${keyword})`;
    const { creditsCharged, query } = answerBody.parse(JSON.parse(answer.text));
    if (query.keyword !== keyword) return [`${subject} belongs to another query: ${query.keyword}`];
    const account = accounts.byRequest.get(answer.requestId);
    if (!account) return [`${subject} has no deciding entry`];
    if (account.organizationId !== organizationId) return [`${subject} was decided for another organization`];
    if (account.decided === "refund") return [`${subject} was delivered although it was refunded: ${account.reason}`];
    if (creditsCharged !== priceMils || account.mils !== -priceMils) return [`${subject} says ${creditsCharged} mils`];
    if (account.keyed !== (key !== undefined))
      return [`${subject} was charged ${account.keyed ? "with" : "without"} a key`];
    const { reversedFor } = account;
    return reversedFor !== undefined && reversedFor !== "undelivered"
      ? [`${subject} was delivered and given back: ${reversedFor}`]
      : [];
  });

/** Answers of one request, or under one key, with different bytes. Redis may have lost its data in between. */
export function unequalAnswers({ attempts }: Evidence): string[] {
  const answered = attempts.filter(({ answer }) => answer?.status === 200);
  const unequal = (name: string, same: readonly Attempt[]) =>
    new Set(same.map(({ answer }) => answer?.text)).size > 1 ? [`${name} has two different answers`] : [];
  const byRequest = Map.groupBy(answered, ({ answer }) => answer?.requestId ?? "");
  const keyed = answered.filter(({ key }) => key !== undefined);
  const byKey = Map.groupBy(keyed, ({ organizationId, key }) => `the key ${key} of ${organizationId}`);
  return [...byRequest, ...byKey].flatMap(([name, same]) => unequal(name, same));
}

/** Answers whose charge was reversed because no confirmation came: the only error in the caller's favour. */
export const answersInDoubt = ({ attempts, accounts }: Evidence): Attempt[] =>
  attempts.filter(
    ({ answer }) => answer?.status === 200 && accounts.byRequest.get(answer.requestId)?.reversedFor === "undelivered",
  );

/** An answer may be in doubt only if its API was killed between the last byte and the confirmation. */
export const unfoundedDoubt = (evidence: Evidence): string[] =>
  answersInDoubt(evidence)
    .filter((attempt) => !wasKilledUnconfirmed(evidence, attempt))
    .map(({ answer }) => `${answer?.requestId} was delivered and given back, and its API was not killed`);

const wasKilledUnconfirmed = ({ apis }: Evidence, { api, endedAtMs }: Attempt): boolean =>
  apis[api].killedAtMs.some(
    (killedAtMs) => killedAtMs > endedAtMs - clockToleranceMs && killedAtMs < endedAtMs + confirmMsMax,
  );

/** Attempts that took longer than the deadline allows, at an API that could answer. */
export const lateAnswers = (evidence: Evidence): string[] =>
  evidence.attempts.flatMap((attempt) => {
    const ms = Math.round(durationMs(attempt));
    if (ms <= evidence.answerMsMax || wasUnreachable(evidence, attempt)) return [];
    const outcome = attempt.answer ? `answered ${attempt.answer.status}` : `not answered (${attempt.noAnswer})`;
    return [`"${attempt.keyword}" was ${outcome} after ${ms} ms`];
  });
