import { createHistogram } from "node:perf_hooks";
import type { LoadResult } from "./load.ts";

const usPerMs = 1_000;
const highestUs = 600_000_000;

/** Collects the latencies and failures of one load. */
export class Recorder {
  readonly #latenciesUs = createHistogram({ lowest: 1, highest: highestUs, figures: 3 });
  readonly #lateUs = createHistogram({ lowest: 1, highest: highestUs, figures: 3 });
  readonly #beganAtMs = performance.now();
  #failed = 0;
  #firstFailure: string | undefined;

  get hasFailed(): boolean {
    return this.#failed > 0;
  }

  answered(latencyMs: number): void {
    this.#latenciesUs.record(asCount(latencyMs));
  }

  sentLate(ms: number): void {
    this.#lateUs.record(asCount(ms));
  }

  failed(failure: string): void {
    this.#failed += 1;
    this.#firstFailure ??= failure;
  }

  result(): LoadResult {
    const { count } = this.#latenciesUs;
    const msAt = (percentile: number) => (count === 0 ? 0 : this.#latenciesUs.percentile(percentile) / usPerMs);
    return {
      answered: count,
      failed: this.#failed,
      ...(this.#firstFailure !== undefined && { firstFailure: this.#firstFailure }),
      seconds: (performance.now() - this.#beganAtMs) / 1_000,
      p50Ms: msAt(50),
      p99Ms: msAt(99),
      maxMs: count === 0 ? 0 : this.#latenciesUs.max / usPerMs,
      ...(this.#lateUs.count > 0 && { sentLateP99Ms: this.#lateUs.percentile(99) / usPerMs }),
    };
  }
}

// A histogram has no 0.
const asCount = (ms: number) => Math.min(highestUs, Math.max(1, Math.round(ms * usPerMs)));
