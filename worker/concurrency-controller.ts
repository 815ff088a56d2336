const slotsMin = 32;
// Searches that are shorter than this wait for this machine and not for a provider.
const longRunMs = 100;
// More slots for short searches make larger batches. But BullMQ ends one search and takes the next in one step only while
// searches wait in the queue. So short searches have a lower bound, and the queue has to stay long.
const shortSlotsMax = 128;
const queuedPerSlotToGrow = 3;
const queuedPerSlotMin = 0.5;
const utilizationToGrow = 0.85;
const utilizationToShrink = 0.95;
const heapShareMax = 0.6;
// BullMQ is about to end the searches in the other slots.
const takenShareToGrow = 0.9;
const takenShareMin = 0.25;
const waitingShareMax = 0.5;
const shrinkTo = 2 / 3;
// One decision is a garbage collection or a pause in the load; so many in a row are not.
const strainedDecisionsMax = 4;
const idleDecisionsMax = 20;

/** What a worker measured since its last decision. */
export interface SlotLoad {
  /** The most searches that it ran at once. */
  taken: number;
  /** How long a search occupies a slot, on average. */
  runMs: number;
  /** Searches in the queue. */
  queued: number;
  /** Calls that wait for a slot at a provider. */
  callsWaiting: number;
  /** Calls that may run at once at all providers. */
  callsMax: number;
  /** Event loop utilization: the share of the time that the event loop was busy, 0–1. */
  utilization: number;
  /** The share of the heap that is used, 0–1. */
  heapShare: number;
}

/**
 * Decides how many searches a worker may run at once, from 32 up to a bound. A search that waits for a provider costs almost
 * nothing, so a slow provider needs many slots. A fast one needs few, and more only while many searches wait.
 */
export class ConcurrencyController {
  readonly #min: number;
  readonly #max: number;
  #slots: number;
  #slotsCeiling: number;
  #strainedDecisions = 0;
  #idleDecisions = 0;

  /** @param max the bound, which may be below 32. */
  constructor(max: number) {
    this.#max = max;
    this.#min = Math.min(slotsMin, max);
    this.#slots = this.#min;
    this.#slotsCeiling = this.#min;
  }

  /** The fewest slots. */
  get slotsMin(): number {
    return this.#min;
  }

  /** Searches that may run at once. */
  get slots(): number {
    return this.#slots;
  }

  /**
   * How many slots it can reach by doubling as soon as searches take them: as many as providers allow calls, if nothing but
   * searches is missing. The APIs admit by it; otherwise they would refuse the first searches of a new load.
   */
  get slotsCeiling(): number {
    return this.#slotsCeiling;
  }

  /**
   * - Doubles when the slots are taken by searches that wait for answers, and event loop and memory have room. While calls
   *   wait for a slot at a provider, the limit there decides, and more searches would only wait longer.
   * - With a fast provider it doubles up to 128 while three times as many searches are in the queue.
   * - Shrinks by a third when memory is short, or when for a while the event loop was busy, or many calls waited at providers,
   *   or most slots were free. Searches whose calls wait for long would end as 504; the APIs refuse them earlier.
   */
  decide(load: SlotLoad): number {
    const isShort = load.runMs < longRunMs;
    this.#strainedDecisions = this.#isStrained(load, isShort) ? this.#strainedDecisions + 1 : 0;
    this.#idleDecisions = this.#isIdle(load, isShort) ? this.#idleDecisions + 1 : 0;
    const isOver = this.#strainedDecisions >= strainedDecisionsMax || this.#idleDecisions >= idleDecisionsMax;
    if (load.heapShare > heapShareMax || isOver) this.#set(Math.floor(this.#slots * shrinkTo));
    else if (isShort) {
      const doubled = Math.min(this.#slots * 2, shortSlotsMax);
      if (load.queued >= this.#slots * queuedPerSlotToGrow && doubled > this.#slots) this.#set(doubled);
    } else if (this.#isSlotMissing(load)) this.#set(this.#slots * 2);
    const growsTo = !isShort && this.#hasRoom(load) ? Math.min(load.callsMax, this.#max) : 0;
    this.#slotsCeiling = Math.max(this.#slots, growsTo);
    return this.#slots;
  }

  #isStrained({ utilization, callsWaiting }: SlotLoad, isShort: boolean): boolean {
    return (!isShort && utilization > utilizationToShrink) || callsWaiting > this.#slots * waitingShareMax;
  }

  #isIdle({ taken, queued }: SlotLoad, isShort: boolean): boolean {
    return taken < this.#slots * takenShareMin || (isShort && queued < this.#slots * queuedPerSlotMin);
  }

  #isSlotMissing(load: SlotLoad): boolean {
    return load.taken >= this.#slots * takenShareToGrow && this.#hasRoom(load);
  }

  #hasRoom({ callsWaiting, utilization, heapShare }: SlotLoad): boolean {
    return callsWaiting === 0 && utilization < utilizationToGrow && heapShare <= heapShareMax;
  }

  #set(slots: number): void {
    this.#slots = Math.min(Math.max(slots, this.#min), this.#max);
    this.#strainedDecisions = 0;
    this.#idleDecisions = 0;
  }
}

// The assumption until the first search has run.
const initialRunMs = 100;
const averageOver = 16;

/**
 * How long a search occupies a slot of this worker: the mean of the first runs, then a moving average. The API uses it to
 * estimate how long a search will wait in the queue.
 */
export class AverageRunTime {
  #runMs = initialRunMs;
  #runs = 0;

  get runMs(): number {
    return this.#runMs;
  }

  add(runMs: number): void {
    this.#runs += 1;
    this.#runMs += (runMs - this.#runMs) / Math.min(this.#runs, averageOver);
  }
}
