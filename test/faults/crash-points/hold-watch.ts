import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { queueKeys } from "../../../shared/queue/search-queue.ts";
import type { Service } from "../../harness/processes/service.ts";

const pollMs = 200;

/**
 * Polls the holds of the organization that searches. Postgres decides before a hold is dropped, so a search without a hold must
 * have its deciding entry. A violation lets the mils be spent twice, and does not show at rest.
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
    // The hold is placed before the job is enqueued.
    for (const requestId of jobs.flat()) this.#seen.add(requestId);
    const { held: _, ...open } = await redis.hgetall(keysOf(this.#organizationId).holds);
    const dropped = [...this.#seen].filter((requestId) => !(requestId in open));
    for (const requestId of Object.keys(open)) this.#seen.add(requestId);
    if (dropped.length === 0) return;
    // The ledger is read after the holds, so it must contain the decisions about dropped ones.
    const entries = await this.#service.ledgerOf(this.#organizationId);
    const decided = new Set(entries.map(({ requestId }) => requestId));
    for (const requestId of dropped) {
      if (!decided.has(requestId)) this.broken.add(`the hold of ${requestId} was dropped before Postgres had decided`);
    }
  }
}
