import { type Actor, recordAudit } from "../audit/audit.ts";
import type { Querying } from "../database/transaction.ts";
import { changeLimits, type LimitChange, type OwnLimits } from "./limits.ts";
import { type IssuedToken, issueToken, revokeToken, type TokenTerms } from "./tokens.ts";

/** Changes of tokens and limits with their entry in the audit trail, for operators and accounts: each in a transaction. */

/** Who makes a change, and in which request to the API if it is one. */
export interface Change {
  actor: Actor;
  requestId?: string | undefined;
}

/** Issues a token. @returns undefined if the organization does not exist. */
export async function issueRecorded(
  transaction: Querying,
  { actor, requestId }: Change,
  organizationId: string,
  terms?: TokenTerms,
): Promise<IssuedToken | undefined> {
  const issued = await issueToken(transaction, organizationId, terms);
  if (!issued) return undefined;
  const { tokenId, scopes, expiresAt } = issued;
  const entry = { organizationId, subject: tokenId, before: null, after: { scopes, expiresAt }, requestId };
  await recordAudit(transaction, actor, { action: "token.issued", ...entry });
  return issued;
}

/** Revokes a token. @returns false if the token does not exist. */
export async function revokeRecorded(
  transaction: Querying,
  { actor, requestId }: Change,
  tokenId: string,
): Promise<boolean> {
  const token = await revokeToken(transaction, tokenId);
  if (!token) return false;
  await recordAudit(transaction, actor, {
    action: "token.revoked",
    organizationId: token.organizationId,
    subject: tokenId,
    before: { revoked: token.wasRevoked },
    after: { revoked: true },
    requestId,
  });
  return true;
}

/** Changes limits. @returns those after the change; undefined if the organization or the token does not exist. */
export async function changeLimitsRecorded(
  transaction: Querying,
  { actor, requestId }: Change,
  { owner, id }: { owner: Parameters<typeof changeLimits>[1]; id: string },
  wanted: LimitChange,
): Promise<OwnLimits | undefined> {
  const limits = await changeLimits(transaction, owner, id, wanted);
  if (!limits) return undefined;
  const { organizationId } = limits.after;
  const [before, after] = [termsOf(limits.before), termsOf(limits.after)];
  const subject = owner === "token" ? id : undefined;
  await recordAudit(transaction, actor, { action: "limit.set", organizationId, subject, before, after, requestId });
  return limits.after;
}

const termsOf = ({ dayLimitMils, monthLimitMils }: OwnLimits) => ({ dayLimitMils, monthLimitMils });
