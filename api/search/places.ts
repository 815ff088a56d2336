import type { SearchRequest } from "./search-request.ts";

/**
 * The searches without an Idempotency-Key that this process has of each organization, from their admission until their answer
 * was taken or given up. In Redis a search gives its place in flight back once it is decided. A caller that takes its answers
 * slowly would get more searches meanwhile than its plan allows in flight, and could give up all of them at once.
 */
export class Places {
  readonly #taken = new Map<string, Set<string>>();

  /** Takes a place, unless the search has one. @returns false if all that its plan allows are taken. */
  take({ caller: { organizationId, plan }, requestId, key }: SearchRequest): boolean {
    if (key) return true;
    const taken = this.#taken.get(organizationId) ?? new Set();
    if (taken.size >= plan.concurrency && !taken.has(requestId)) return false;
    this.#taken.set(organizationId, taken.add(requestId));
    return true;
  }

  /** Gives the place of a search back, if it has one. */
  leave({ caller: { organizationId }, requestId }: SearchRequest): void {
    const taken = this.#taken.get(organizationId);
    taken?.delete(requestId);
    if (taken?.size === 0) this.#taken.delete(organizationId);
  }
}
