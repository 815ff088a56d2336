import type { Database } from "../../shared/database/pool.ts";
import { closestNames } from "../../shared/errors/closest-names.ts";
import { findFirstParts } from "./stored-lists.ts";

/**
 * The share of a worker's time that comparing names may take. A comparison with all names of a country takes up to 0.3 s,
 * and the refusal that it is for is free.
 */
const shareMax = 0.05;

/** Finds names that another may be a misspelling of, one at a time. */
export class SimilarNames {
  readonly #database: Database;
  #againAtMs = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  /** @returns folded first parts of names of the country, closest first; undefined if the share of the time is used up. */
  async find(
    providers: readonly string[],
    named: { countryCode: string; firstPart: string },
  ): Promise<string[] | undefined> {
    const startedAtMs = performance.now();
    if (startedAtMs < this.#againAtMs) return undefined;
    this.#againAtMs = Number.POSITIVE_INFINITY;
    try {
      const names = await findFirstParts(this.#database, providers, named);
      return closestNames(named.firstPart, new Map(names.map((name) => [name, name])));
    } finally {
      const endedAtMs = performance.now();
      this.#againAtMs = startedAtMs + (endedAtMs - startedAtMs) / shareMax;
    }
  }
}
