import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  CircuitState,
  circuitBreaker,
  CountBreaker,
  handleWhenResult,
} from "cockatiel";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics.ts";
import { type Failure, failureKinds } from "../provider.ts";

const window = { threshold: 0.5, size: 20, minimumNumberOfCalls: 5 };
const openMs = 10_000;

/**
 * The circuit breaker of one provider in this process. Other workers reach their own verdict. It judges whole attempts,
 * not calls: one failed page of ten, and the pages that are dropped because of it, say little by themselves.
 *
 * - **closed**: attempts run and are counted. Opens when more than half of the last 20 outcomes, with at least 5 of them,
 *   count against the provider (`countsAgainstProvider` in the table of failure kinds). Outcomes that say nothing about
 *   the provider are not counted.
 * - **open**, for 10 s: failover tries other providers first. After that the next attempt is the trial (half-open).
 * - **half-open**, while the trial runs: for all other searches the circuit is still open. Closes when the trial succeeds;
 *   opens for another 10 s when it fails, or when its outcome does not count.
 *
 * If failover has no other provider, it runs an attempt although the circuit is open. Such an attempt bypasses the
 * breaker and is not counted, so that it neither delays the trial nor replaces it.
 */
export class CircuitBreaker {
  readonly #policy: CircuitBreakerPolicy;
  /** On the clock of `performance.now()`, which is never set back. */
  #trialAtMs = 0;

  constructor({ provider, metrics, log }: { provider: string; metrics: Metrics; log: Log }) {
    this.#policy = circuitBreaker(
      // The policy passes on what run() below returned to it.
      handleWhenResult((judged) => (judged as Judged<object>).isFailure),
      { halfOpenAfter: openMs, breaker: new CountBreaker(window) },
    );
    this.#policy.onStateChange((state) => {
      if (state === CircuitState.HalfOpen) return;
      const isOpen = state === CircuitState.Open;
      if (isOpen) this.#trialAtMs = performance.now() + openMs;
      metrics.providerBreakerOpen.set({ provider }, isOpen ? 1 : 0);
      log.warn(
        { provider },
        isOpen ? "circuit opened: the provider keeps failing" : "circuit closed: the provider works",
      );
    });
    metrics.providerBreakerOpen.set({ provider }, 0);
  }

  /** Whether an attempt that starts now would bypass the breaker. False when it would be the trial. */
  isOpen(): boolean {
    const { state } = this.#policy;
    if (state === CircuitState.Open) return performance.now() < this.#trialAtMs;
    return state === CircuitState.HalfOpen;
  }

  /** Runs an attempt and counts its outcome; bypasses the breaker while the circuit is open. The attempt must not throw. */
  async run<T extends object>(attempt: () => Promise<T | Failure>): Promise<T | Failure> {
    if (this.isOpen()) return attempt();
    const isTrial = this.#policy.state === CircuitState.Open;
    const judge = async (): Promise<Judged<T>> => {
      const outcome = await attempt();
      const isFailure = countsAgainstProvider(outcome) ?? (isTrial || "unknown");
      // The policy counts everything that is returned, and nothing that is thrown.
      if (isFailure === "unknown") throw new NotCounted(outcome);
      return { outcome, isFailure };
    };
    try {
      return (await this.#policy.execute(judge)).outcome;
    } catch (error) {
      // Thrown by judge() above, with an outcome of type T.
      if (error instanceof NotCounted) return error.outcome as T | Failure;
      // The policy measures the 10 s by the machine's clock, which may be set back: then it is still open.
      if (error instanceof BrokenCircuitError) return attempt();
      throw error;
    }
  }
}

type Judged<T> = { outcome: T | Failure; isFailure: boolean };

class NotCounted extends Error {
  readonly outcome: object;

  constructor(outcome: object) {
    super("The outcome says nothing about the provider.");
    this.outcome = outcome;
  }
}

/** Null if the outcome says nothing about the provider. */
function countsAgainstProvider(outcome: object | Failure): boolean | null {
  return "failure" in outcome ? failureKinds[outcome.failure].countsAgainstProvider : false;
}
