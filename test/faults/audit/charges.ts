import { createHash } from "node:crypto";
import { isStanding } from "./accounts.ts";
import { type Attempt, type Evidence, wasUnreachable } from "./evidence.ts";

/** Compares the charges in the ledger with the answers that callers got. Each function returns a sentence per broken promise. */

/**
 * Charges that stand although the caller got an error. Under a key the answer is still owed, so only charges without one count.
 */
export const chargedErrors = ({ attempts, accounts }: Evidence): string[] =>
  attempts.flatMap(({ answer, key, keyword }) => {
    const account = accounts.byRequest.get(answer?.requestId ?? "");
    if (!answer || answer.status === 200 || key !== undefined || !account || !isStanding(account)) return [];
    return [`${answer.requestId} (${keyword}) was answered ${answer.status} and is charged`];
  });

/**
 * Charges without a key that stand although no caller has the answer. That is right only if the API handed all bytes to the
 * socket of a caller that had disconnected, which it logs as 200, or if it died before it could log that.
 */
export function chargesWithoutAnswer(evidence: Evidence): string[] {
  const { attempts, accounts, apis } = evidence;
  const known = new Set(attempts.map(({ answer }) => answer?.requestId));
  const statuses = new Map(apis.flatMap((api) => [...api.statuses]));
  const orphans = [...accounts.byRequest].filter(
    ([requestId, account]) => isStanding(account) && !account.keyed && !known.has(requestId),
  );
  const refused = orphans.flatMap(([requestId]) => {
    const status = statuses.get(requestId);
    return status === undefined || status === 200 ? [] : [`${requestId} is charged, and its API answered ${status}`];
  });
  const tooMany = [...Map.groupBy(orphans, ([, { organizationId }]) => organizationId)].flatMap(
    ([organizationId, found]) => {
      const disconnected = attempts.filter(
        (one) => one.organizationId === organizationId && one.key === undefined && couldNotReceive(evidence, one),
      );
      return found.length > disconnected.length
        ? [`${organizationId}: ${found.length} charges for ${disconnected.length} callers that had disconnected`]
        : [];
    },
  );
  return [...refused, ...tooMany];
}

/** Whether the API may have handed all bytes to this caller's socket although the caller read no answer. */
const couldNotReceive = (evidence: Evidence, attempt: Attempt): boolean =>
  !attempt.answer && (attempt.noAnswer === "disconnected" || wasUnreachable(evidence, attempt));

/** Charges that came before the provider had returned anything for the keyword. */
export function chargesBeforeResults({ attempts, accounts, providerCalls }: Evidence): string[] {
  const calls = Map.groupBy(providerCalls, ({ keyword }) => keyword);
  return attempts.flatMap(({ keyword, answer }) => {
    const account = accounts.byRequest.get(answer?.requestId ?? "");
    if (account?.decided !== "charge") return [];
    const isFounded = calls.get(keyword)?.some(({ answeredAtMs }) => answeredAtMs <= account.decidedAtMs + 1);
    return isFounded ? [] : [`"${keyword}" was charged before the provider had answered it`];
  });
}

export function keysChargedTwice({ attempts, accounts }: Evidence): string[] {
  const answered = attempts.filter(({ key, answer }) => key !== undefined && answer?.status === 200);
  return [...Map.groupBy(answered, ({ key }) => key)].flatMap(([key, same]) => {
    const requestIds = new Set(same.map(({ answer }) => answer?.requestId ?? ""));
    const charged = [...requestIds].filter((id) => accounts.byRequest.get(id)?.decided === "charge");
    return charged.length > 1 ? [`the key ${key} was charged ${charged.length} times`] : [];
  });
}

// A search that was admitted before the charge may still call the provider, at a worker that a fault had frozen.
const askedAgainMsMin = 20_000;

/** Keys that have paid and for which the provider was called again, although Postgres had the answer. */
export const keysAskedAgain = ({ attempts, accounts, providerCalls }: Evidence): string[] =>
  attempts.flatMap(({ keyword, key, answer }) => {
    const account = accounts.byRequest.get(answer?.requestId ?? "");
    if (key === undefined || account?.decided !== "charge") return [];
    const since = account.decidedAtMs + askedAgainMsMin;
    const again = providerCalls.filter((call) => call.keyword === keyword && call.answeredAtMs > since);
    return again.some(({ answeredAtMs }) => Number.isFinite(answeredAtMs))
      ? [`"${keyword}" was paid under a key, and the provider was asked again`]
      : [];
  });

/** Keys that have paid and whose answer no caller got. */
export function keysWithoutAnswer({ attempts, accounts }: Evidence): string[] {
  const answered = attempts.filter(({ answer }) => answer?.status === 200);
  const fetched = new Set(answered.map(({ key = "" }) => createHash("sha256").update(key).digest("hex")));
  return accounts.paidKeyHashes
    .filter((hash) => !fetched.has(hash))
    .map((hash) => `the key with the hash ${hash} paid, and no caller has its answer`);
}
