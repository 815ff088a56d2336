import { LRUCache } from "lru-cache";
import { Batcher } from "../shared/concurrency/batcher.ts";
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

interface Lookup {
  tokenHash: string;
  resolve: (row: unknown) => void;
  reject: (error: unknown) => void;
}

type Lane = "known" | "new";

/**
 * Looks tokens up in Postgres, many in one statement. There are two lanes with one connection each: tokens that were valid
 * lately, and all others. A caller with made-up tokens shares a lane with other newcomers, and never delays a known caller.
 */
export class TokenLookups {
  readonly #latelyValid = new LRUCache<string, true>({ max: latelyValidMax });
  readonly #lanes: Record<Lane, Batcher<Lookup>>;
  readonly #count: Metrics["tokenLookups"];
  #newcomers = 0;

  /** @param parts.findCallers looks up the tokens of one batch by their hashes: a row for each valid one. */
  constructor(parts: {
    findCallers: (tokenHashes: readonly string[]) => Promise<Map<string, unknown>>;
    metrics: Pick<Metrics, "tokenLookups">;
  }) {
    this.#count = parts.metrics.tokenLookups;
    const run = async (lookups: Lookup[]) => {
      try {
        const rows = await parts.findCallers(lookups.map(({ tokenHash }) => tokenHash));
        for (const { tokenHash, resolve } of lookups) resolve(rows.get(tokenHash));
      } catch (error) {
        for (const { reject } of lookups) reject(error);
      }
    };
    this.#lanes = {
      known: new Batcher({ sizeMax: batchMax, concurrency: 1, run }),
      new: new Batcher({ sizeMax: batchMax, concurrency: 1, pauseMs: newcomerPauseMs, run }),
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
      const row = await new Promise<unknown>((resolve, reject) => {
        this.#lanes[lane].add({ tokenHash, resolve, reject });
      });
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
