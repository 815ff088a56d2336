import { LRUCache } from "lru-cache";
import { runPeriodically } from "../../shared/concurrency/run-periodically.ts";
import { Semaphore } from "../../shared/concurrency/semaphore.ts";
import type { Context } from "../../shared/process/context.ts";
import type { Database } from "../../shared/database/pool.ts";
import { findLocation, type FoundLocation, SimilarNames } from "./find-location.ts";
import { readStoredLists, type StoredList } from "./stored-lists.ts";

/** A worker follows a refreshed list after this time at the latest. */
const reloadIntervalMs = 10_000;
/** One takes some hundred bytes, or a kilobyte with its candidates. */
const locationsCachedMax = 10_000;
/** Look-ups at once: settling searches uses the same connections. */
const lookUpsMax = 2;
/** How long a look-up without its suggestions counts. */
const incompleteForMs = 1_000;

/**
 * What cities and regions mean by the stored lists of the providers. A location is looked up in Postgres once and then kept
 * until a list changes. Without a stored list nothing is looked up.
 */
export class ListedLocations {
  readonly #database: Database;
  readonly #providers: readonly string[];
  readonly #similarNames: SimilarNames;
  readonly #semaphore = new Semaphore(lookUpsMax);
  #lists: readonly StoredList[] | undefined;
  #found: LRUCache<string, FoundLocation>;

  /** @param providers the providers whose lists count, in order of preference. */
  constructor(database: Database, providers: readonly string[]) {
    this.#database = database;
    this.#providers = providers;
    this.#similarNames = new SimilarNames(database);
    this.#found = this.#newCache([]);
  }

  /** Reads which lists are stored. If one has changed, all locations are looked up again. */
  async reload(): Promise<readonly StoredList[]> {
    const lists = (await readStoredLists(this.#database)).filter(({ provider }) => this.#providers.includes(provider));
    // A lookup that is under way ends in the cache that it began with.
    if (JSON.stringify(lists) !== JSON.stringify(this.#lists)) this.#found = this.#newCache(lists);
    this.#lists = lists;
    return lists;
  }

  /**
   * Looks up a canonical location that is finer than a country. Rejects if Postgres does not answer.
   * @returns undefined if no list of a provider is stored.
   */
  async find(location: string): Promise<FoundLocation | undefined> {
    const lists = this.#lists ?? (await this.reload());
    return lists.length > 0 ? this.#found.fetch(location) : undefined;
  }

  #newCache(lists: readonly StoredList[]): LRUCache<string, FoundLocation> {
    const stored = new Set(lists.map(({ provider }) => provider));
    const providers = this.#providers.filter((provider) => stored.has(provider));
    const searched = { database: this.#database, providers, similarNames: this.#similarNames };
    return new LRUCache({
      max: locationsCachedMax,
      fetchMethod: async (location, _stale, { options }) => {
        const found = await this.#semaphore.run(() => findLocation(searched, location));
        if (found.candidates === undefined) options.ttl = incompleteForMs;
        return found;
      },
    });
  }
}

/** Opens the lists of these providers and follows their changes. */
export function openListedLocations(
  context: Pick<Context, "database" | "log" | "metrics" | "shutdown">,
  providers: readonly string[],
): ListedLocations {
  const { database, metrics } = context;
  const listed = new ListedLocations(database, providers);
  const run = async () => {
    const lists = await listed.reload();
    metrics.locationListRefreshed.reset();
    for (const { provider, refreshedAt } of lists) {
      metrics.locationListRefreshed.set({ provider }, refreshedAt.getTime() / 1_000);
    }
  };
  runPeriodically({ name: "location_lists", pauseMs: reloadIntervalMs, run, ...context });
  return listed;
}
