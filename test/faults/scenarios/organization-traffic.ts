import { keepInFlight } from "./callers.ts";
import type { SeededOrganization } from "./seed-organizations.ts";
import type { ScenarioStack } from "./scenario.ts";
import { type Asked, sendSequence } from "./request-sequence.ts";

/** Visits everybody in turn, again and again, while Redis loses what it knows. */
export class OrganizationTraffic {
  /** What was asked since the loss. */
  readonly asked: Asked[] = [];
  /** What was asked by visits that were under way when it happened. */
  readonly underWay: Asked[] = [];
  /** Who was being visited meanwhile: what they have is not known to the mil any more, so they are not visited again. */
  readonly doubted = new Set<SeededOrganization>();
  /** When nothing of what Redis knew was left. By `performance.now()`, like all times here. */
  lostAtMs = Number.POSITIVE_INFINITY;
  /** When everybody had been visited since the loss. */
  allVisitedAtMs = Number.POSITIVE_INFINITY;
  readonly #scene: ScenarioStack;
  readonly #waiting: SeededOrganization[];
  #phase: "before" | "losing" | "after" = "before";
  readonly #visited = new Set<SeededOrganization>();
  /** Who is being visited since before the loss. */
  readonly #inside = new Set<SeededOrganization>();
  readonly #size: number;
  #count = 0;

  constructor(scene: ScenarioStack, crowd: readonly SeededOrganization[]) {
    this.#scene = scene;
    this.#waiting = [...crowd];
    this.#size = crowd.length;
  }

  /** Goes on until everybody was visited since the loss, and it is enough. */
  async go(inFlight: number, isEnough: () => boolean): Promise<void> {
    await keepInFlight(inFlight, async () => {
      const member = this.#waiting.shift();
      if (!member) return false;
      await this.#visit(member);
      return !(performance.now() > this.allVisitedAtMs && isEnough());
    });
  }

  /** Redis is about to lose what it knows. */
  beginLoss(): void {
    this.#phase = "losing";
  }

  /** From now on nothing of what Redis knew is left. */
  endLoss(): void {
    this.#phase = "after";
    this.lostAtMs = performance.now();
  }

  async #visit(member: SeededOrganization): Promise<void> {
    const began = this.#phase;
    if (began !== "after") this.#inside.add(member);
    const asked = await sendSequence(this.#scene, member, this.#count++);
    this.#inside.delete(member);
    if (began !== "after" && this.#phase !== "before") {
      this.doubted.add(member);
      this.underWay.push(...asked);
    } else {
      this.#waiting.push(member);
    }
    if (began !== "after") return;
    this.asked.push(...asked);
    this.#visited.add(member);
    if (this.#visited.size + this.doubted.size + this.#inside.size < this.#size) return;
    this.allVisitedAtMs = Math.min(this.allVisitedAtMs, performance.now());
  }
}
