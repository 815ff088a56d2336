import type { SearchRequest } from "./search-request.ts";

/**
 * The searches without an Idempotency-Key that this process has of each organization, from their admission until their answer was
 * taken or given up. In Redis a search gives its concurrency slot back once it is decided. A caller that takes its answers slowly
 * would get more searches meanwhile than its plan allows at once, and could give up all of them together.
 */
export class InFlightSearches {
  readonly #requestIds = new Map<string, Set<string>>();

  /**
   * Counts a search until it has ended, unless it is counted already.
   * @returns false if as many of its organization are in flight as the plan allows.
   */
  add({ caller: { organizationId, plan }, requestId, key, ended }: SearchRequest): boolean {
    if (key) return true;
    const own = this.#requestIds.get(organizationId) ?? new Set();
    if (own.has(requestId)) return true;
    if (own.size >= plan.concurrency) return false;
    this.#requestIds.set(organizationId, own.add(requestId));
    void ended.then(() => this.#remove(organizationId, requestId));
    return true;
  }

  #remove(organizationId: string, requestId: string): void {
    const own = this.#requestIds.get(organizationId);
    own?.delete(requestId);
    if (own?.size === 0) this.#requestIds.delete(organizationId);
  }
}
