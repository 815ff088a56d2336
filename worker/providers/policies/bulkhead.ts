import type { Metrics } from "../../../shared/metrics.ts";
import type { PageOutcome, Provider } from "../provider.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import type { SlotClaim, SlotClaims } from "./attempt.ts";

type Wait = { deadlineAtMs: number; signal: AbortSignal; claims: SlotClaims };

/**
 * Limits how many calls this process runs at one provider (`concurrentCallsMax`), to a fixed or a discovered number. Further
 * calls wait for a slot, and organizations take turns ({@link SlotTurns}). The queue needs no limit: a worker runs a bounded
 * number of searches, each with a bounded number of pages, and no call waits beyond the deadline of its attempt.
 */
export class Bulkhead {
  readonly #turns = new SlotTurns();
  readonly #adaptive: AdaptiveLimit | undefined;
  readonly #metrics: Metrics;
  readonly #labels: { provider: string };
  #callsMax: number;
  #running = 0;
  #waiting = 0;
  #isFilling = false;

  constructor({ name, concurrentCallsMax }: Pick<Provider, "name" | "concurrentCallsMax">, metrics: Metrics) {
    this.#metrics = metrics;
    this.#labels = { provider: name };
    if (concurrentCallsMax === "adaptive") {
      this.#adaptive = new AdaptiveLimit({
        isUsedUp: () => !this.hasFreeSlot(),
        callsWaiting: () => this.#waiting,
        changed: (calls) => this.#resize(calls),
      });
    }
    const callsMax = this.#adaptive?.calls ?? Number(concurrentCallsMax);
    this.#callsMax = callsMax;
    // A provider in this process has no limit, so the gauge has no value for it.
    if (Number.isFinite(callsMax)) metrics.providerCallsLimit.set(this.#labels, callsMax);
    metrics.providerCallsRunning.set(this.#labels, 0);
  }

  /** Whether a call would start at once. */
  hasFreeSlot(): boolean {
    return this.#running < this.#callsMax && this.#waiting === 0;
  }

  /** Calls that may run at once. */
  get callsMax(): number {
    return this.#callsMax;
  }

  /** Calls that wait for a slot. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Runs a call as soon as a slot is free. A call that runs has to end by the deadline itself.
   * @param wait.deadlineAtMs on the clock of `performance.now()`.
   * @returns the outcome of the call, or `busy` if no slot became free before the deadline or the cancellation.
   */
  run(call: () => Promise<PageOutcome>, wait: Wait): Promise<PageOutcome> {
    if (!this.hasFreeSlot()) return this.#runLater(call, wait);
    this.#metrics.providerSlotWaitSeconds.observe(this.#labels, 0);
    return this.#counted(call, wait.claims.fewest);
  }

  #runLater(call: () => Promise<PageOutcome>, { deadlineAtMs, signal, claims }: Wait): Promise<PageOutcome> {
    this.#adaptive?.waits();
    const { promise, resolve } = Promise.withResolvers<PageOutcome>();
    const askedAtMs = performance.now();
    const places = new Map<string, WaitingCall>();
    const endWait = () => {
      this.#waiting -= 1;
      stopJoining();
      for (const place of places.values()) this.#turns.leave(place);
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      this.#metrics.providerSlotWaitSeconds.observe(this.#labels, (performance.now() - askedAtMs) / 1_000);
    };
    const giveUp = () => {
      endWait();
      resolve({ failure: "busy", outOfTime: true });
    };
    const start = (claim: SlotClaim) => {
      // From here on the outcome of the call counts: `busy` must not hide a provider that hangs.
      resolve(this.#counted(call, claim));
      endWait();
    };
    this.#waiting += 1;
    const stopJoining = claims.wait({
      enter: (claim) => {
        const place = { claim, deadlineAtMs, start: () => start(claim) };
        places.set(claim.organizationId, place);
        this.#turns.enter(place);
      },
      leave: ({ organizationId }) => {
        const place = places.get(organizationId);
        if (place) this.#turns.leave(place);
        places.delete(organizationId);
      },
    });
    const timer = setTimeout(giveUp, Math.max(0, deadlineAtMs - askedAtMs));
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    return promise;
  }

  #resize(calls: number): void {
    this.#callsMax = calls;
    this.#metrics.providerCallsLimit.set(this.#labels, calls);
    this.#fill();
  }

  /** Assigns free slots after this turn of the event loop: a search may request its next pages in it. */
  #fill(): void {
    if (this.#isFilling || this.#turns.waiting === 0) return;
    this.#isFilling = true;
    setImmediate(() => {
      this.#isFilling = false;
      while (this.#running < this.#callsMax && this.#turns.waiting > 0) this.#turns.next()?.start();
    });
  }

  async #counted(call: () => Promise<PageOutcome>, claim: SlotClaim): Promise<PageOutcome> {
    const gauge = this.#metrics.providerCallsRunning;
    gauge.inc(this.#labels);
    this.#running += 1;
    const began = { atMs: performance.now(), calls: this.#running, organizationId: claim.organizationId };
    this.#turns.started(claim);
    if (!this.hasFreeSlot()) this.#adaptive?.usedUp();
    try {
      const outcome = await call();
      this.#adaptive?.ended(outcome, began);
      return outcome;
    } finally {
      gauge.dec(this.#labels);
      this.#running -= 1;
      this.#turns.ended(claim);
      this.#fill();
    }
  }
}

/** The place of a waiting call for one organization. */
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
  running: SlotClaim[];
  /** The claim of these calls that had the most open searches when one of them last came or left. */
  claim: SlotClaim;
  /** The calls that it received, on a scale on which organizations that always wait stay level. */
  served: number;
};

/**
 * Decides whose call gets the next free slot of a provider. Every second slot goes to the organization with the fewest open
 * searches, so that a small one never queues behind large ones. The other slots go to the organization that has received the
 * fewest calls, so that a large one gets at least half of an equal share, however many small ones there are. Each rule breaks
 * the ties of the other. Calls are counted, not searches: a search of depth 100 takes ten.
 *
 * An organization with several searches that has more than an equal share of the running calls comes last. Otherwise slow calls
 * would take slot after slot, since they give none back, until they have all.
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
  #running = 0;

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
    this.#forget(call.claim, client);
  }

  /** The call that gets the next slot; undefined if none waits. The caller must start it or remove it. */
  next(): WaitingCall | undefined {
    if (this.#waiting === 0) return undefined;
    this.#isTurnOfFew = !this.#isTurnOfFew;
    const isFirst = this.#isTurnOfFew ? hasFewer : gotFewer;
    const share = this.#running / this.#clients.size;
    const isAbove = ({ claim, running }: Client) => claim.openSearches > 1 && running.length > share;
    const isBefore = (one: Client, other: Client) =>
      isAbove(one) === isAbove(other) ? isFirst(one, other) : isAbove(other);
    let first: Client | undefined;
    for (const client of this.#clients.values())
      if (client.waiting.length > 0 && (!first || isBefore(client, first))) first = client;
    if (first && !this.#isTurnOfFew) this.#level = first.served;
    return first?.waiting[0];
  }

  /** Counts a call that has a slot. */
  started(claim: SlotClaim): void {
    const client = this.#clientOf(claim);
    client.running.push(claim);
    this.#running += 1;
    // Where no call waits, no organization is ahead of the others.
    if (this.#waiting === 0) this.#level = Math.max(this.#level, client.served);
    client.served += 1;
  }

  ended(claim: SlotClaim): void {
    const client = this.#clientOf(claim);
    client.running.splice(client.running.indexOf(claim), 1);
    this.#running -= 1;
    this.#forget(claim, client);
  }

  #clientOf(claim: SlotClaim): Client {
    let client = this.#clients.get(claim.organizationId);
    if (!client) {
      client = { waiting: [], running: [], claim, served: this.#level };
      this.#clients.set(claim.organizationId, client);
    }
    client.claim = mostOf(client.claim, claim);
    return client;
  }

  /** Forgets the claim of a call that has left, and with its last call the organization. */
  #forget(claim: SlotClaim, client: Client): void {
    const { waiting, running } = client;
    if (running.length === 0 && waiting.length === 0) this.#clients.delete(claim.organizationId);
    else if (claim === client.claim && !running.includes(claim) && !waiting.some((call) => call.claim === claim))
      client.claim = [...waiting.map((call) => call.claim), ...running].reduce(mostOf);
  }
}

const mostOf = (one: SlotClaim, other: SlotClaim) => (other.openSearches > one.openSearches ? other : one);

const hasFewer = ({ claim: one, served }: Client, { claim: other, served: otherServed }: Client) =>
  one.openSearches < other.openSearches || (one.openSearches === other.openSearches && served < otherServed);

const gotFewer = (one: Client, other: Client) =>
  one.served < other.served || (one.served === other.served && one.claim.openSearches < other.claim.openSearches);
