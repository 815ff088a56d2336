import { LRUCache } from "lru-cache";
import type { Context } from "../../shared/process/context.ts";
import { type LimitName, limitDetails, renewalBehind, spentIn } from "../../shared/credits/limits.ts";
import { freeDecidedHolds, listHoldsOfToken, listHoldsWithMils } from "../../shared/credits/open-holds.ts";
import type { Credit } from "../../shared/credits/ledger.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";
import type { Admission } from "../../shared/credits/admit.ts";
import { CallerError } from "../../shared/errors.ts";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { readCurrentCredit } from "../current-credit.ts";
import { orRedisUnavailable } from "../datastore-unavailable.ts";
import { unavailable } from "../errors.ts";

// An organization without credit that keeps retrying costs one check per interval and process.
const checkIntervalMs = 250;
const checksCachedMax = 10_000;

/** Why Redis refuses a search for its price: the credit is too low, or a limit would be exceeded. */
export type CreditRefusal = Extract<Admission, { outcome: "insufficient_credit" | "spending_limit" }>;

type Payer = Pick<Caller, "organizationId" | "tokenId">;

/** What Redis shows, as far as a check depends on it. */
interface RedisView {
  organizationId: string;
  tokenId: string;
  version: number;
  heldMils: number;
  /** The limit that refused the search, and what was spent against it. */
  reached: (LimitName & { spentMils: number }) | undefined;
}

/** Redis holds fewer mils by now: a search ended a moment ago, and Redis may have enough without any correction. */
type Outdated = "outdated";

export interface CreditCheckParts extends Pick<Context, "redis" | "database"> {
  /** Where a caller without credit is sent. */
  topupUrl: string;
}

/**
 * Checks with Postgres whether an organization really is short of credit, or at a limit, before a search is refused. Redis may
 * show less than there is, where its copy is older than a top-up or a reversal, or where the messages of two workers
 * crossed: a newer balance then stands beside the hold of a search whose charge it contains, which counts twice.
 */
export class CreditCheck {
  readonly #parts: CreditCheckParts;
  readonly #fromPostgres: LRUCache<string, Credit | Outdated, RedisView>;
  readonly #copies = new Map<string, Promise<void>>();

  constructor(parts: CreditCheckParts) {
    this.#parts = parts;
    this.#fromPostgres = new LRUCache({
      max: checksCachedMax,
      ttl: checkIntervalMs,
      fetchMethod: async (_key, _stale, { context }) => this.#readFromPostgres(context),
    });
  }

  /**
   * Copies what Postgres has of the caller's credit to Redis, which has lost it. All searches of a token that need it at the
   * same time share one copy: with limits, each reversal makes one necessary.
   * @param version of the balance that Redis has without what was spent; 0 if it has none.
   * @throws {CallerError} `unavailable`
   */
  copy(caller: Payer & Pick<Caller, "limits">, version: number): Promise<void> {
    const { organizationId, tokenId } = caller;
    const name = `${organizationId} ${tokenId}`;
    const copying = this.#copies.get(name) ?? this.#copy(caller, version).finally(() => this.#copies.delete(name));
    this.#copies.set(name, copying);
    return copying;
  }

  async #copy({ organizationId, tokenId, limits }: Payer & Pick<Caller, "limits">, version: number): Promise<void> {
    const credit = await readCurrentCredit(this.#parts, organizationId, version, { tokenId });
    if (!credit) throw new Error(`the organization ${organizationId} has disappeared`);
    // Limits that Postgres does not know any more: it was restored from the past. This process forgets them within 2 s.
    const isKnown = (!limits?.organization || credit.balance.spending) && (!limits?.token || credit.token);
    if (!isKnown) throw unavailable("balance_unreadable");
    await this.#store(organizationId, credit);
  }

  /**
   * Corrects Redis if it shows less than there is. Only a state that is still the same is answered from a recent check.
   * @returns `outdated` if Redis was corrected, or shows more by now: ask it again. Otherwise what Postgres has.
   * @throws {CallerError} `unavailable`
   */
  async correct({ organizationId, tokenId }: Payer, refusal: CreditRefusal): Promise<Credit | Outdated | undefined> {
    const { version, heldMils } = refusal;
    const reached =
      refusal.outcome === "spending_limit" ? { ...refusal.limit, spentMils: refusal.spentMils } : undefined;
    const view: RedisView = { organizationId, tokenId, version, heldMils, reached };
    const state = stateOf(view);
    const truth = await this.#fromPostgres.fetch(state, { context: view });
    if (!truth || (truth !== "outdated" && !showsMore(truth, view))) return truth;
    this.#fromPostgres.delete(state); // Other holds may lead to the same state.
    if (truth === "outdated") return truth;
    await this.#store(organizationId, truth);
    const { balance, decided } = truth;
    if (decided.length > 0)
      await orRedisUnavailable(freeDecidedHolds(this.#parts.redis, organizationId, balance.version, decided));
    return "outdated";
  }

  /** The error of a search that Postgres cannot pay for either. @param credit what Postgres has. */
  error(
    { limits }: Pick<Caller, "limits">,
    priceMils: number,
    refusal: CreditRefusal,
    credit: Credit | undefined,
  ): CallerError {
    const { topupUrl } = this.#parts;
    const { heldMils } = refusal;
    if (refusal.outcome === "insufficient_credit") {
      const { availableMils } = refusal;
      return new CallerError("out_of_credits", { priceMils, availableMils, heldMils, action: "topup", topupUrl });
    }
    const { limit, spentMils } = refusal;
    const spending = credit && spendingOf(credit, limit);
    if (spending === undefined) return unavailable("balance_unreadable");
    const shown = { priceMils, spentMils, heldMils, topupUrl, renewsAt: renewalBehind(limit.period, spending) };
    return new CallerError("out_of_credits", limitDetails(limits, limit, shown));
  }

  async #readFromPostgres(view: RedisView): Promise<Credit | Outdated | undefined> {
    const { organizationId, tokenId, version, heldMils, reached } = view;
    const { redis } = this.#parts;
    const none = { requestIds: [], heldMils };
    const list = () =>
      reached?.scope === "token"
        ? listHoldsOfToken(redis, organizationId, tokenId)
        : listHoldsWithMils(redis, organizationId);
    const held = heldMils > 0 ? await orRedisUnavailable(list()) : none;
    if (held.heldMils < heldMils) return "outdated";
    return readCurrentCredit(this.#parts, organizationId, version, { tokenId, requestIds: held.requestIds });
  }

  async #store(organizationId: string, { balance, token }: Credit): Promise<void> {
    await orRedisUnavailable(storeBalance(this.#parts.redis, organizationId, balance, token ? [token] : []));
  }
}

/**
 * At a limit the state leaves out the version, which searches of other tokens raise all the time. A refund raises no version, so
 * one whose hold still stands may be overlooked until the check is {@link checkIntervalMs} old.
 */
function stateOf({ organizationId, tokenId, version, heldMils, reached }: RedisView): string {
  if (!reached) return `${organizationId} ${version} ${heldMils}`;
  const { scope, period, spentMils } = reached;
  return `${scope === "token" ? tokenId : organizationId} ${period} ${spentMils} ${heldMils}`;
}

/** Whether Postgres has more than Redis shows. */
function showsMore(credit: Credit, { version, reached }: RedisView): boolean {
  if (credit.decided.length > 0) return true;
  if (!reached) return credit.balance.version > version;
  const spending = spendingOf(credit, reached);
  return spending !== undefined && spentIn(reached.period, spending) < reached.spentMils;
}

/** What counts against a limit. Undefined if Postgres was restored from a time before the limit. */
const spendingOf = ({ balance, token }: Credit, { scope }: LimitName) =>
  scope === "token" ? token?.spending : balance.spending;
