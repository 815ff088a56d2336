import type { Log } from "../../../shared/log.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import { type Failure, failureKinds } from "../provider.ts";

const outcomesMax = 20;
const outcomesMin = 5;
const failedShareMax = 0.5;
const openMs = 10_000;

/**
 * The circuit breaker of one provider in this process; each worker judges for itself. It judges whole attempts, not calls:
 * one failed page of ten, and the pages that are dropped because of it, say little.
 *
 * - **closed**: attempts run and are counted. Opens when more than half of the last 20 outcomes, with at least 5 of them,
 *   count against the provider (`countsAgainstProvider` in the table of failure kinds). Outcomes that say nothing about
 *   the provider are not counted. It stays closed while all failures are of one organization, whose keywords may be the cause,
 *   and others had an answer.
 * - **open**, for 10 s: failover tries other providers first. After that the next attempt is the trial (half-open).
 * - **half-open**, while the trial runs: for all other searches the circuit is still open. Closes when the trial succeeds;
 *   opens for another 10 s when it fails. If its outcome does not count, the next attempt is the trial: a caller who
 *   disconnects keeps no provider from the others.
 *
 * If failover has no other provider, it runs an attempt although the circuit is open. Such an attempt bypasses the
 * breaker and is not counted, so that it neither delays the trial nor replaces it.
 */
export class CircuitBreaker {
  readonly #setOpen: (isOpen: boolean) => void;
  /** The last attempts that were counted. */
  #ended: { isFailure: boolean; organizationId: string }[] = [];
  /** Undefined while the circuit is closed. On the clock of `performance.now()`, which is never set back. */
  #trialAtMs: number | undefined;
  #isTrialRunning = false;
  /** How often the circuit has opened or closed. An attempt that began before the last time says nothing about the provider now. */
  #changes = 0;

  constructor({ provider, metrics, log }: { provider: string; metrics: Metrics; log: Log }) {
    metrics.providerBreakerOpen.set({ provider }, 0);
    this.#setOpen = (isOpen) => {
      this.#ended = [];
      this.#changes += 1;
      this.#trialAtMs = isOpen ? performance.now() + openMs : undefined;
      metrics.providerBreakerOpen.set({ provider }, isOpen ? 1 : 0);
      const message = isOpen ? "circuit opened: the provider keeps failing" : "circuit closed: the provider works";
      log.warn({ provider }, message);
    };
  }

  /** Whether an attempt that starts now would bypass the breaker. False when it would be the trial. */
  isOpen(): boolean {
    return this.#trialAtMs !== undefined && (this.#isTrialRunning || performance.now() < this.#trialAtMs);
  }

  /** Runs an attempt of an organization and counts its outcome; bypasses the breaker while the circuit is open. */
  async run<T extends object>(attempt: () => Promise<T | Failure>, organizationId: string): Promise<T | Failure> {
    if (this.isOpen()) return attempt();
    if (this.#trialAtMs !== undefined) return this.#try(attempt);
    const changes = this.#changes;
    const outcome = await attempt();
    if (changes === this.#changes) this.#count(countsAgainstProvider(outcome), organizationId);
    return outcome;
  }

  async #try<T extends object>(attempt: () => Promise<T | Failure>): Promise<T | Failure> {
    this.#isTrialRunning = true;
    let isFailure: boolean | null = true;
    try {
      const outcome = await attempt();
      isFailure = countsAgainstProvider(outcome);
      return outcome;
    } finally {
      this.#isTrialRunning = false;
      if (isFailure !== null) this.#setOpen(isFailure);
    }
  }

  #count(isFailure: boolean | null, organizationId: string): void {
    if (isFailure === null) return;
    this.#ended = [...this.#ended, { isFailure, organizationId }].slice(-outcomesMax);
    const failed = this.#ended.filter((each) => each.isFailure);
    if (this.#ended.length < outcomesMin || failed.length <= this.#ended.length * failedShareMax) return;
    const [first] = failed;
    const isOfFirst = (each: { organizationId: string }) => each.organizationId === first?.organizationId;
    const failsAlone = failed.every(isOfFirst) && !this.#ended.every(isOfFirst);
    if (!failsAlone) this.#setOpen(true);
  }
}

/** Null if the outcome says nothing about the provider. */
function countsAgainstProvider(outcome: object | Failure): boolean | null {
  return "failure" in outcome ? failureKinds[outcome.failure].countsAgainstProvider : false;
}
