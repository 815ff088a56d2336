import { LRUCache } from "lru-cache";
import { BatchedLookup } from "../shared/concurrency/batched-lookup.ts";
import type { Metrics } from "../shared/metrics.ts";
import { type Caller, readCaller } from "../shared/organizations/organizations.ts";
import { unavailable } from "./errors.ts";

/** Connections to Postgres that the lanes take at the same time. */
export const lookupConnections = 2;

const batchMax = 500;
const latelyValidMax = 10_000;
/** Lookups of other tokens that are under way or wait. Beyond it they are refused. */
const newcomersMax = 1_000;
/** After each batch of other tokens. A flood of made-up tokens is looked up at this pace, many in one statement. */
const newcomerPauseMs = 20;

type Lane = "known" | "new";

/**
 * Looks tokens up in Postgres, many in one statement. There are two lanes with one connection each: tokens that were valid
 * lately, and all others. A caller with made-up tokens shares a lane with other newcomers, and never delays a known caller.
 */
export class TokenLookups {
  readonly #latelyValid = new LRUCache<string, true>({ max: latelyValidMax });
  readonly #lanes: Record<Lane, BatchedLookup<string, unknown>>;
  readonly #count: Metrics["tokenLookups"];
  #newcomers = 0;

  /** @param parts.findCallers looks up the tokens of one batch by their hashes: a row for each valid one. */
  constructor(parts: {
    findCallers: (tokenHashes: readonly string[]) => Promise<Map<string, unknown>>;
    metrics: Pick<Metrics, "tokenLookups">;
  }) {
    this.#count = parts.metrics.tokenLookups;
    const lane = {
      sizeMax: batchMax,
      concurrency: 1,
      nameOf: (tokenHash: string) => tokenHash,
      read: parts.findCallers,
    };
    this.#lanes = {
      known: new BatchedLookup(lane),
      new: new BatchedLookup({ ...lane, pauseMs: newcomerPauseMs }),
    };
  }

  /**
   * Finds the caller of a token by its hash in hexadecimal; undefined if the token is unknown, expired or revoked.
   * @throws {CallerError} `unavailable`, reason `token_lookups_full`, if too many new tokens wait; otherwise what the lookup throws.
   */
  async find(tokenHash: string): Promise<Caller | undefined> {
    const lane = this.#latelyValid.get(tokenHash) ? "known" : "new";
    if (lane === "known") return this.#find(lane, tokenHash);
    if (this.#newcomers >= newcomersMax) {
      this.#count.inc({ lane, outcome: "refused" });
      throw unavailable("token_lookups_full");
    }
    this.#newcomers += 1;
    return this.#find(lane, tokenHash).finally(() => {
      this.#newcomers -= 1;
    });
  }

  async #find(lane: Lane, tokenHash: string): Promise<Caller | undefined> {
    try {
      const row = await this.#lanes[lane].find(tokenHash);
      // A row that cannot be read fails its own lookup, and no other of the batch.
      const caller = row === undefined ? undefined : readCaller(row);
      if (caller) this.#latelyValid.set(tokenHash, true);
      else this.#latelyValid.delete(tokenHash);
      this.#count.inc({ lane, outcome: caller ? "valid" : "invalid" });
      return caller;
    } catch (error) {
      this.#count.inc({ lane, outcome: "failed" });
      throw error;
    }
  }
}
