import { setTimeout as sleep } from "node:timers/promises";
import { keepInFlight } from "./callers.ts";
import { type CheckedAnswer, sendSequence } from "./request-sequence.ts";
import type { ScenarioStack } from "./scenario-stack.ts";
import type { SeededOrganization } from "./seed-organizations.ts";

/** Sends request sequences for every organization in turn, repeatedly, while Redis loses its data. */
export class OrganizationTraffic {
  /** Answers of sequences that began after the loss. */
  readonly afterLoss: CheckedAnswer[] = [];
  /** Answers of sequences that were in flight at the loss. */
  readonly inFlight: CheckedAnswer[] = [];
  /** Their organizations, whose balances are no longer known to the mil. They get no further sequence. */
  readonly doubtful = new Set<SeededOrganization>();
  /** When Redis had lost its data. By `performance.now()`, like all instants here. */
  lostAtMs = Number.POSITIVE_INFINITY;
  /** When every organization had completed a sequence since the loss. */
  allServedAtMs = Number.POSITIVE_INFINITY;
  readonly #stack: ScenarioStack;
  readonly #waiting: SeededOrganization[];
  #phase: "before" | "losing" | "after" = "before";
  readonly #served = new Set<SeededOrganization>();
  /** Organizations with a sequence that began before the loss. */
  readonly #active = new Set<SeededOrganization>();
  readonly #size: number;
  #count = 0;

  constructor(stack: ScenarioStack, organizations: readonly SeededOrganization[]) {
    this.#stack = stack;
    this.#waiting = [...organizations];
    this.#size = organizations.length;
  }

  /** Runs until every organization has completed a sequence since the loss and `isEnough` is true. */
  async run(inFlight: number, isEnough: () => boolean): Promise<void> {
    await keepInFlight(inFlight, async () => {
      const organization = this.#waiting.shift();
      if (!organization) return false;
      await this.#serve(organization);
      return !(performance.now() > this.allServedAtMs && isEnough());
    });
  }

  /** Whether a search that began after the loss was answered. */
  get hasAnsweredSearch(): boolean {
    return this.afterLoss.some(({ what, answer }) => what === "search" && answer.status === 200);
  }

  /** Waits until this many sequences have begun. */
  async untilBegun(count: number): Promise<void> {
    while (this.#count < count) await sleep(10);
  }

  /** Redis is about to lose its data. */
  beginLoss(): void {
    this.#phase = "losing";
  }

  /** Redis has lost its data. */
  endLoss(): void {
    this.#phase = "after";
    this.lostAtMs = performance.now();
  }

  async #serve(organization: SeededOrganization): Promise<void> {
    const began = this.#phase;
    if (began !== "after") this.#active.add(organization);
    const checked = await sendSequence(this.#stack, organization, this.#count++);
    this.#active.delete(organization);
    if (began !== "after" && this.#phase !== "before") {
      this.doubtful.add(organization);
      this.inFlight.push(...checked);
    } else {
      this.#waiting.push(organization);
    }
    if (began !== "after") return;
    this.afterLoss.push(...checked);
    this.#served.add(organization);
    if (this.#served.size + this.doubtful.size + this.#active.size < this.#size) return;
    this.allServedAtMs = Math.min(this.allServedAtMs, performance.now());
  }
}
