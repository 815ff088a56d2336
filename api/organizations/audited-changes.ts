import { type Actor, type Change, type Changer, recordAudit } from "../../shared/audit/audit.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { changeLimits, type LimitChange, type OwnLimits } from "./limits.ts";
import {
  DayLimitRequired,
  excessesOf,
  LimitsTooHigh,
  lockAccountOf,
  readDescendants,
  readFamilyMember,
} from "../tokens/token-family.ts";
import { type AccountToken, type IssuedToken, issueToken, revokeToken, type TokenTerms } from "../tokens/tokens.ts";
import { recordEvent } from "../../shared/webhooks/webhook-events.ts";

/**
 * Changes of tokens and limits, and test events, by operators and accounts. Each is one transaction with its entry in the audit
 * trail.
 */

/** Issues a token. @returns undefined if the organization does not exist. */
export async function issueRecorded(
  transaction: Querying,
  change: Change,
  organizationId: string,
  terms?: TokenTerms,
): Promise<IssuedToken | undefined> {
  const issued = await issueToken(transaction, organizationId, terms);
  if (!issued) return undefined;
  const { tokenId, scopes, expiresAt } = issued;
  const { parentId, dayMils: dayLimitMils = null, monthMils: monthLimitMils = null } = terms ?? {};
  const after = {
    scopes,
    expiresAt,
    ...(parentId !== undefined && { parentId }),
    ...((dayLimitMils ?? monthLimitMils) !== null && { dayLimitMils, monthLimitMils }),
  };
  const values = { organizationId, subject: tokenId, before: null, after };
  await recordAudit(transaction, { ...change, action: "token.issued", ...values });
  return issued;
}

/** Revokes a token. @returns false if the token does not exist. */
export async function revokeRecorded(transaction: Querying, change: Change, tokenId: string): Promise<boolean> {
  const token = await revokeToken(transaction, tokenId);
  if (!token) return false;
  const values = { before: { revoked: token.wasRevoked }, after: { revoked: true } };
  const { organizationId } = token;
  await recordAudit(transaction, { ...change, action: "token.revoked", organizationId, subject: tokenId, ...values });
  return true;
}

/**
 * Revokes a token and, if asked, the valid ones that it made, that these made, and so on.
 * @returns those descendants; undefined if the token does not exist.
 */
export async function revokeFamilyRecorded(
  transaction: Querying,
  change: Change,
  { tokenId, withDescendants }: { tokenId: string; withDescendants: boolean },
): Promise<AccountToken[] | undefined> {
  // No token of the family is made meanwhile.
  if ((await lockAccountOf(transaction, tokenId)) === undefined) return undefined;
  const descendants = await readDescendants(transaction, tokenId);
  const revoked = withDescendants ? descendants.map((descendant) => descendant.tokenId) : [];
  for (const id of [tokenId, ...revoked]) await revokeRecorded(transaction, change, id);
  return descendants;
}

/**
 * Changes limits. Where limits of a token are lowered, those of the tokens that it made come down with them.
 * @returns those after the change; undefined if the organization or the token does not exist.
 * @throws {LimitsTooHigh} if a token would get more than its parent has, or if a session would raise a limit above that of its token.
 * @throws {DayLimitRequired} if the token of a door would lose its daily limit.
 */
export async function changeLimitsRecorded(
  transaction: Querying,
  change: Change,
  { owner, id }: { owner: Parameters<typeof changeLimits>[1]; id: string },
  wanted: LimitChange,
): Promise<OwnLimits | undefined> {
  if (owner === "token") await refuseLimits(transaction, change.actor, id, wanted);
  const limits = await changeLimits(transaction, owner, id, wanted);
  if (!limits) return undefined;
  if (owner === "organization") await refuseExcesses(transaction, limits.before, wanted, ownTokensOf(change.actor));
  await recordLimits(transaction, change, limits, owner === "token" ? id : undefined);
  if (owner === "token") await lowerDescendants(transaction, change, id, limits.after);
  return limits.after;
}

async function refuseLimits(transaction: Querying, actor: Actor, id: string, wanted: LimitChange): Promise<void> {
  await lockAccountOf(transaction, id);
  const token = await readFamilyMember(transaction, id, "any");
  if (!token) return;
  if (token.scopes.includes("door") && wanted.dayMils === null) throw new DayLimitRequired();
  const parents = token.parentId === null ? [] : [token.parentId];
  await refuseExcesses(transaction, token, wanted, [...new Set([...parents, ...ownTokensOf(actor)])]);
}

/** The token of the session that makes a change; none for an operator. */
const ownTokensOf = (actor: Actor) => (actor.kind === "account" ? [actor.tokenId] : []);

async function refuseExcesses(
  transaction: Querying,
  current: Parameters<typeof excessesOf>[0],
  wanted: LimitChange,
  boundIds: readonly string[],
): Promise<void> {
  for (const boundId of boundIds) {
    const bound = await readFamilyMember(transaction, boundId, "any");
    const excesses = bound ? excessesOf(current, wanted, bound) : [];
    if (excesses.length > 0) throw new LimitsTooHigh(excesses);
  }
}

/** Lowers what the descendants of a token may spend to what it may spend itself. */
async function lowerDescendants(transaction: Querying, change: Change, id: string, limits: OwnLimits): Promise<void> {
  for (const descendant of await readDescendants(transaction, id)) {
    const [dayMils, monthMils] = [
      lower(descendant.dayLimitMils, limits.dayLimitMils),
      lower(descendant.monthLimitMils, limits.monthLimitMils),
    ];
    if (dayMils === descendant.dayLimitMils && monthMils === descendant.monthLimitMils) continue;
    const changed = await changeLimits(transaction, "token", descendant.tokenId, { dayMils, monthMils });
    if (changed) await recordLimits(transaction, change, changed, descendant.tokenId);
  }
}

/** The lower of two limits; null for none. */
const lower = (one: number | null, other: number | null) =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);

async function recordLimits(
  transaction: Querying,
  change: Change,
  limits: { before: OwnLimits; after: OwnLimits },
  subject: string | undefined,
): Promise<void> {
  const { organizationId } = limits.after;
  const [before, after] = [termsOf(limits.before), termsOf(limits.after)];
  await recordAudit(transaction, { ...change, action: "limit.set", organizationId, subject, before, after });
}

const termsOf = ({ dayLimitMils, monthLimitMils }: OwnLimits) => ({ dayLimitMils, monthLimitMils });

/** Records an event of the type `webhook.test`. @returns its id, or why there is none. */
export async function testWebhook(
  transaction: Querying,
  changer: Changer,
): Promise<{ eventId: string } | "none" | "too_many"> {
  const recorded = await recordEvent(transaction, changer.organizationId, { type: "webhook.test", data: {} });
  if (typeof recorded === "string") return recorded;
  await recordAudit(transaction, { ...changer, action: "webhook.tested", subject: recorded.eventId });
  return recorded;
}
