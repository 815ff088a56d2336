import type { SlotClaim } from "./attempt.ts";

/** A call that waits for a slot. */
type WaitingCall = {
  claim: SlotClaim;
  /** On the clock of `performance.now()`. */
  deadlineAtMs: number;
  start: () => void;
};

/** An organization that has calls at the provider or waiting for it. */
type Client = {
  /** In the order that they get slots. */
  waiting: WaitingCall[];
  running: number;
  /** The most open searches that any of its calls here reported. */
  openSearches: number;
  /** The calls that it received, on a scale on which organizations that always wait stay level. */
  served: number;
};

/**
 * Decides whose call gets the next free slot of a provider. Every second slot goes to the organization with the fewest open
 * searches, so that a small one never queues behind large ones. The other slots go to the organization that has received the
 * fewest calls, so that a large one gets at least half of an equal share, however many small ones there are. Each rule breaks
 * the ties of the other. Calls are counted, not searches: a search of depth 100 takes ten.
 *
 * An organization that starts or resumes waiting begins level with those that wait: it has no credit from earlier. Within an
 * organization the oldest search goes first, so that searches end one by one and not all at their deadline.
 */
export class SlotTurns {
  readonly #clients = new Map<string, Client>();
  /** The `served` of the organization that was last chosen for having received the fewest calls. */
  #level = 0;
  #isTurnOfFew = false;
  #waiting = 0;

  /** Calls that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  enter(call: WaitingCall): void {
    const client = this.#clientOf(call.claim);
    if (client.waiting.length === 0) client.served = Math.max(client.served, this.#level);
    const behind = client.waiting.findLastIndex(({ deadlineAtMs }) => deadlineAtMs <= call.deadlineAtMs);
    client.waiting.splice(behind + 1, 0, call);
    this.#waiting += 1;
  }

  /** Removes a call that no longer waits. */
  leave(call: WaitingCall): void {
    const client = this.#clientOf(call.claim);
    client.waiting.splice(client.waiting.indexOf(call), 1);
    this.#waiting -= 1;
    this.#forgetIfGone(call.claim, client);
  }

  /** The call that gets the next slot; undefined if none waits. The caller must start it or remove it. */
  next(): WaitingCall | undefined {
    if (this.#waiting === 0) return undefined;
    this.#isTurnOfFew = !this.#isTurnOfFew;
    const isBefore = this.#isTurnOfFew ? hasFewer : gotFewer;
    let first: Client | undefined;
    for (const client of this.#clients.values())
      if (client.waiting.length > 0 && (!first || isBefore(client, first))) first = client;
    if (first && !this.#isTurnOfFew) this.#level = first.served;
    return first?.waiting[0];
  }

  /** Counts a call that has a slot. */
  started(claim: SlotClaim): void {
    const client = this.#clientOf(claim);
    client.running += 1;
    // Where no call waits, no organization is ahead of the others.
    if (this.#waiting === 0) this.#level = Math.max(this.#level, client.served);
    client.served += 1;
  }

  ended(claim: SlotClaim): void {
    const client = this.#clientOf(claim);
    client.running -= 1;
    this.#forgetIfGone(claim, client);
  }

  #clientOf({ organizationId, openSearches }: SlotClaim): Client {
    let client = this.#clients.get(organizationId);
    if (!client) {
      client = { waiting: [], running: 0, openSearches, served: this.#level };
      this.#clients.set(organizationId, client);
    }
    client.openSearches = Math.max(client.openSearches, openSearches);
    return client;
  }

  #forgetIfGone({ organizationId }: SlotClaim, { waiting, running }: Client): void {
    if (running === 0 && waiting.length === 0) this.#clients.delete(organizationId);
  }
}

const hasFewer = (one: Client, other: Client) =>
  one.openSearches < other.openSearches || (one.openSearches === other.openSearches && one.served < other.served);

const gotFewer = (one: Client, other: Client) =>
  one.served < other.served || (one.served === other.served && one.openSearches < other.openSearches);
