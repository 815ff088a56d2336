import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import { freeDecidedHolds, listHoldsWithMils } from "../../shared/credits/open-holds.ts";
import { readBalanceAndDecided } from "../../shared/credits/ledger.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";
import type { VersionedBalance } from "../../shared/credits/versioned-balance.ts";
import type { Database } from "../../shared/database/pool.ts";
import { unavailable } from "../errors.ts";

// An organization without credit that keeps retrying costs one check per interval and process.
const checkIntervalMs = 250;
const checksCachedMax = 10_000;

/** What Redis has of an organization whose credit is too low for a search. */
export interface ShownCredit {
  version: number;
  heldMils: number;
}

interface Truth {
  balance: VersionedBalance;
  /** Searches that hold mils in Redis and are decided: `balance` contains what they were charged. */
  decided: string[];
}

/** Redis holds fewer mils by now: a search ended a moment ago, and Redis may have enough without any correction. */
type Outdated = "outdated";

/**
 * Checks with Postgres whether an organization really is short of credit before a search is refused. Redis may show less
 * than there is, where its copy of the balance is older than a top-up or a reversal, or where two workers' messages
 * arrived crossed: a newer balance stands beside the hold of a search whose charge it contains, and counts that twice.
 */
export class CreditCheck {
  readonly #redis: Redis;
  readonly #truths: LRUCache<string, Truth | Outdated, { organizationId: string; heldMils: number }>;
  readonly #spentVersions = new LRUCache<string, number>({ max: checksCachedMax });

  constructor({ redis, database }: { redis: Redis; database: Database }) {
    this.#redis = redis;
    this.#truths = new LRUCache({
      max: checksCachedMax,
      ttl: checkIntervalMs,
      fetchMethod: async (_key, _stale, { context: { organizationId, heldMils } }) => {
        const none = { requestIds: [], heldMils };
        const held = heldMils > 0 ? await fromRedis(listHoldsWithMils(redis, organizationId)) : none;
        if (held.heldMils < heldMils) return "outdated";
        return readBalanceAndDecided(database, organizationId, held.requestIds).catch(() => {
          throw unavailable("postgres_unreachable");
        });
      },
    });
  }

  /**
   * The version of the balance at which the organization was last found short of credit with nothing held. No search and no
   * key can be paid from that balance.
   */
  spentVersion(organizationId: string): number | undefined {
    return this.#spentVersions.get(organizationId);
  }

  /**
   * Corrects Redis if it shows less than there is. Only a state that is still the same is answered from a recent check,
   * so that a change is never overlooked.
   * @returns whether Redis was corrected, or shows more by now: ask it again.
   * @throws {CallerError} `unavailable`
   */
  async correct(organizationId: string, { version, heldMils }: ShownCredit): Promise<boolean> {
    const state = `${organizationId} ${version} ${heldMils}`;
    const truth = await this.#truths.fetch(state, { context: { organizationId, heldMils } });
    if (!truth) return false;
    if (truth === "outdated") {
      this.#truths.delete(state);
      return true;
    }
    const { balance, decided } = truth;
    if (balance.version <= version && decided.length === 0) {
      if (heldMils === 0) this.#spentVersions.set(organizationId, version);
      return false;
    }
    this.#truths.delete(state); // Other holds may lead to the same state.
    await fromRedis(storeBalance(this.#redis, organizationId, balance));
    if (decided.length > 0) await fromRedis(freeDecidedHolds(this.#redis, organizationId, balance.version, decided));
    return true;
  }
}

function fromRedis<T>(step: Promise<T>): Promise<T> {
  return step.catch(() => {
    throw unavailable("redis_unreachable");
  });
}
