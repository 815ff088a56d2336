import type { Charge } from "../../../harness/fixtures/charge-of.ts";
import type { RefundReason } from "../../../../shared/outcomes.ts";
import type { Limits, PayerLimits } from "../../../../shared/queue/search-job.ts";
import type { TokenSpending } from "../../../../shared/credits/ledger.ts";
import type { Search } from "./participants.ts";
import { accountOf, type Entry, type PostgresModel } from "./postgres-state.ts";

/**
 * What limits allow, by the model of Postgres. All entries of a run are of the same day, so a day and its month have the
 * same sum. The owner of a limit is an organization or a token, by its id.
 */

const dayMs = 86_400_000;

/** The mils of these entries that count against the limits of an owner. */
export const spentMilsOf = (entries: readonly Entry[], ownerId: string): number =>
  entries.reduce((sum, { kind, mils, tokenId }) => {
    const counts = (kind === "charge" || kind === "reversal") && (ownerId.startsWith("org_") || tokenId === ownerId);
    return counts ? sum - mils : sum;
  }, 0);

/** The text of spending_text(). */
export function spendingText(mils: number): string {
  const now = new Date();
  const nextMonthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  return `${Math.floor(now.getTime() / dayMs)}:${mils}:${mils}:${nextMonthMs / dayMs}`;
}

/** The mils in the text of spending_text(). */
export const milsIn = (spending: string): number => Number(spending.split(":")[1]);

/** What an owner spent; absent if it never had a limit. */
export function spendingOf(postgres: PostgresModel, organizationId: string, ownerId: string): { spending?: string } {
  if (!postgres.limits.has(ownerId)) return {};
  return { spending: spendingText(spentMilsOf(accountOf(postgres, organizationId).entries, ownerId)) };
}

export function tokenSpendingOf(
  postgres: PostgresModel,
  organizationId: string,
  tokenId: string | null | undefined,
): TokenSpending | undefined {
  const { spending } = tokenId ? spendingOf(postgres, organizationId, tokenId) : {};
  if (!tokenId || spending === undefined) return undefined;
  return { tokenId, version: accountOf(postgres, organizationId).version, spending };
}

/** The limits of a search as Postgres has them, or as they were before the last change of each (`age` 2). */
export function payerLimitsOf(
  { limits }: PostgresModel,
  { organizationId, tokenId }: Pick<Search, "organizationId" | "tokenId">,
  age: 1 | 2 = 1,
): PayerLimits | undefined {
  const [organization, token] = [organizationId, tokenId].map((id) => limits.get(id)?.at(-age) ?? {});
  const isSet = (own: Limits | undefined): own is Limits => Object.keys(own ?? {}).length > 0;
  if (!isSet(organization) && !isSet(token)) return undefined;
  return { ...(isSet(organization) && { organization }), ...(isSet(token) && { token: { ...token, tokenId } }) };
}

/**
 * Decides for one batch which charges the tokens' limits, the balances and the organizations' limits refuse. The first
 * search of a batch that exceeds one of them is refused, and so are all later ones of the same token or organization.
 */
export function guardOf(postgres: PostgresModel): (charge: Charge) => Refusal {
  const begins = new Map<string, { balanceMils: number; spentMils: number; askedMils: number }>();
  const ask = (organizationId: string, ownerId: string, mils: number) => {
    const { balanceMils, entries } = accountOf(postgres, organizationId);
    const begin = begins.get(ownerId) ?? { balanceMils, spentMils: spentMilsOf(entries, ownerId), askedMils: 0 };
    begins.set(ownerId, begin);
    begin.askedMils += mils;
    const { dayMils, monthMils } = postgres.limits.get(ownerId)?.at(-1) ?? {};
    const exceeds = (limit: number | undefined) =>
      limit !== undefined && begin.askedMils > Math.max(0, limit - begin.spentMils);
    return { day: exceeds(dayMils), month: exceeds(monthMils), balance: begin.askedMils > begin.balanceMils };
  };
  return ({ organizationId, tokenId, priceMils }) => {
    const ofToken = tokenId ? ask(organizationId, tokenId, priceMils) : undefined;
    if (ofToken?.month) return "token_monthly_limit";
    if (ofToken?.day) return "token_daily_limit";
    const ofOrganization = ask(organizationId, organizationId, priceMils);
    if (ofOrganization.balance) return "out_of_credits";
    if (ofOrganization.month) return "monthly_limit";
    return ofOrganization.day ? "daily_limit" : undefined;
  };
}
type Refusal = RefundReason | undefined;
