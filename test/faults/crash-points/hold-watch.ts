import { keysOf } from "../../../shared/credits/holds.ts";
import { queueKeys } from "../../../shared/queue/search-queue.ts";
import type { Service } from "../../harness/processes/service.ts";

const lookEveryMs = 200;

/**
 * Looks all the time at the holds of the one organization that searches: a search whose hold is gone has its deciding
 * entry in Postgres, for whoever ends a hold has decided before. In the end nobody could tell; meanwhile its mils could
 * have been spent twice.
 */
export class HoldWatch {
  readonly broken = new Set<string>();
  readonly #service: Service;
  readonly #organizationId: string;
  readonly #seen = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor(service: Service, organizationId: string) {
    this.#service = service;
    this.#organizationId = organizationId;
    this.#timer = setInterval(() => void this.#look().catch(() => undefined), lookEveryMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const { redis } = this.#service;
    const jobs = await Promise.all([queueKeys.waiting, queueKeys.running].map((list) => redis.lrange(list, 0, -1)));
    // A job is enqueued behind its hold.
    for (const requestId of jobs.flat()) this.#seen.add(requestId);
    const { held: _, ...open } = await redis.hgetall(keysOf(this.#organizationId).holds);
    const gone = [...this.#seen].filter((requestId) => !(requestId in open));
    for (const requestId of Object.keys(open)) this.#seen.add(requestId);
    if (gone.length === 0) return;
    // Read behind the holds: what was gone then is decided by now.
    const entries = await this.#service.ledgerOf(this.#organizationId);
    const decided = new Set(entries.map(({ requestId }) => requestId));
    for (const requestId of gone) {
      if (!decided.has(requestId)) this.broken.add(`the hold of ${requestId} was dropped before its end was decided`);
    }
  }
}
