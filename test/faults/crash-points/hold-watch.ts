import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { queueKeys } from "../../../shared/queue/search-queue.ts";
import type { Service } from "../../harness/processes/service.ts";

const pollMs = 200;

/**
 * Polls the holds of the one organization that searches. A search without a hold must have its deciding entry in Postgres,
 * because Postgres decides before a hold is dropped. At rest a violation would not show any more; until then the mils
 * could have been spent twice.
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
    this.#timer = setInterval(() => void this.#poll().catch(() => undefined), pollMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #poll(): Promise<void> {
    const { redis } = this.#service;
    const jobs = await Promise.all([queueKeys.waiting, queueKeys.running].map((list) => redis.lrange(list, 0, -1)));
    // A job is enqueued after its hold was placed.
    for (const requestId of jobs.flat()) this.#seen.add(requestId);
    const { held: _, ...open } = await redis.hgetall(keysOf(this.#organizationId).holds);
    const dropped = [...this.#seen].filter((requestId) => !(requestId in open));
    for (const requestId of Object.keys(open)) this.#seen.add(requestId);
    if (dropped.length === 0) return;
    // The ledger is read after the holds: what had been dropped then is decided by now.
    const entries = await this.#service.ledgerOf(this.#organizationId);
    const decided = new Set(entries.map(({ requestId }) => requestId));
    for (const requestId of dropped) {
      if (!decided.has(requestId)) this.broken.add(`the hold of ${requestId} was dropped before Postgres had decided`);
    }
  }
}
