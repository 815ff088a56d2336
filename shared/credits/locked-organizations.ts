import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Batcher } from "../concurrency/batcher.ts";
import { Turns } from "../concurrency/turns.ts";
import type { Database } from "../database/pool.ts";

/** Each attempt keeps a connection while it waits for a lock: the others are for organizations that are not locked. */
const attemptsAtOnce = 2;
const retryPauseMs = 50;

/**
 * Work for organizations whose rows another transaction keeps locked. Each of them waits here by itself, one attempt after the
 * other, and no other organization waits with it.
 */
export class LockedOrganizations<Item> {
  /** By organization; without those whose last attempt succeeded, although items may wait that came before it did. */
  readonly #locked = new Map<string, Batcher<Item>>();
  readonly #waiting = new Set<Batcher<Item>>();
  readonly #turns = new Turns(attemptsAtOnce);
  readonly #sizeMax: number;
  readonly #attempt: (items: Item[]) => Promise<Item[]>;

  /** @param options.attempt tries the items of one organization, at most `sizeMax`. It returns those to try again, and never rejects. */
  constructor(options: { sizeMax: number; attempt: (items: Item[]) => Promise<Item[]> }) {
    this.#sizeMax = options.sizeMax;
    this.#attempt = options.attempt;
  }

  /** Whether the last attempt of this organization failed, or waits: then more of its work has to wait here. */
  has(organizationId: string): boolean {
    return this.#locked.has(organizationId);
  }

  add(organizationId: string, item: Item): void {
    const known = this.#locked.get(organizationId);
    if (known) return known.add(item);
    const own: Batcher<Item> = new Batcher({
      sizeMax: this.#sizeMax,
      concurrency: 1,
      run: async (items) => {
        const again = await this.#turns.run(() => this.#attempt(items));
        if (again.length === 0) this.#locked.delete(organizationId);
        else await sleep(retryPauseMs);
        for (const one of again) own.add(one);
      },
    });
    own.add(item);
    this.#locked.set(organizationId, own);
    this.#waiting.add(own);
    void own.idle().then(() => this.#waiting.delete(own));
  }

  /** Resolves once nothing waits. */
  async idle(): Promise<void> {
    await Promise.all([...this.#waiting].map((own) => own.idle()));
  }
}

const idRow = z.object({ id: z.string() });

/** Those of these organizations whose rows another transaction has locked at this moment. */
export async function findLocked(database: Database, organizationIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await database.query(
    "select id from organizations where id = any($1) order by id for no key update skip locked",
    [organizationIds],
  );
  const free = new Set(rows.map((row) => idRow.parse(row).id));
  return new Set(organizationIds.filter((id) => !free.has(id)));
}
