import type { Decision, VersionedBalance } from "../../../../shared/credits/ledger.ts";
import type { Limits } from "../../../../shared/queue/search-job.ts";

/** What the model keeps of Postgres. */

export interface Entry {
  version: number;
  kind: "grant" | "charge" | "reversal" | "correction";
  mils: number;
  /** The balance after this entry. */
  balanceMils: number;
  /** The request, the grant or the correction. */
  subject: string;
  reason: string | null;
  /** The token of the search, where the process that settled knew it. */
  tokenId: string | null;
}

/** A search that was not charged, and the version of the ledger at that time. */
export interface Refund {
  version: number;
  subject: string;
  reason: string;
  tokenId: string | null;
}

export interface Account extends Pick<VersionedBalance, "balanceMils" | "version"> {
  entries: Entry[];
  refunds: Refund[];
}

export interface ModelAnswer {
  requestId: string;
  /** As it is stored, in hexadecimal. */
  compressed: string;
}

export interface PostgresModel {
  accounts: Map<string, Account>;
  decided: Map<string, Pick<Decision, "organizationId" | "kind" | "chargedMils" | "reason">>;
  reversed: Set<string>;
  undelivered: Set<string>;
  /** The fingerprint that a key has paid for, by {@link keyOf}. */
  paid: Map<string, string>;
  /** The answer under a key that has paid, by {@link keyOf}. */
  answers: Map<string, ModelAnswer>;
  /** The organization of each grant, by the id of the grant. */
  grants: Map<string, string>;
  /** The organization of each correction, by its id. */
  corrections: Map<string, string>;
  /** All limits that an organization or a token has had, by its id, the newest last. */
  limits: Map<string, Limits[]>;
  /** The limits in force when a search was charged, by their owners. */
  chargedUnder: Map<string, Map<string, Limits>>;
}

export const keyOf = (organizationId: string, keyHash: string) => `${organizationId} ${keyHash}`;

export function accountOf(postgres: PostgresModel, organizationId: string): Account {
  const account = postgres.accounts.get(organizationId);
  if (!account) throw new Error(`no account of ${organizationId}`);
  return account;
}
