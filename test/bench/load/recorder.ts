import { createHistogram, type RecordableHistogram } from "node:perf_hooks";
import type { Load, LoadResult } from "./load.ts";

const usPerMs = 1_000;
const highestUs = 600_000_000;

/** Collects the latencies, refusals and failures of one load, from the end of its lead. */
export class Recorder {
  readonly #latenciesUs = newHistogram();
  readonly #refusalsUs = newHistogram();
  readonly #lateUs = newHistogram();
  readonly #mayRefuse: boolean;
  readonly #measuredFromMs: number;
  #lastMs = 0;
  #answered = 0;
  #failed = 0;
  #firstFailure: string | undefined;

  constructor({ leadSeconds = 0, mayRefuse = false }: Partial<Pick<Load, "leadSeconds" | "mayRefuse">> = {}) {
    this.#mayRefuse = mayRefuse;
    this.#measuredFromMs = performance.now() + leadSeconds * 1_000;
  }

  get hasFailed(): boolean {
    return this.#failed > 0;
  }

  answered(latencyMs: number): void {
    this.#answered += 1;
    this.#record(this.#latenciesUs, latencyMs);
  }

  refused(latencyMs: number): void {
    this.#record(this.#refusalsUs, latencyMs);
  }

  sentLate(ms: number): void {
    this.#record(this.#lateUs, ms);
  }

  failed(failure: string): void {
    this.#failed += 1;
    this.#firstFailure ??= failure;
  }

  result(): LoadResult {
    const seconds = Math.max(0, this.#lastMs - this.#measuredFromMs) / 1_000;
    const perSecond = ({ count }: RecordableHistogram) => (count === 0 ? 0 : count / seconds);
    return {
      answered: this.#answered,
      failed: this.#failed,
      ...(this.#firstFailure !== undefined && { firstFailure: this.#firstFailure }),
      searchesPerSecond: perSecond(this.#latenciesUs),
      ...(this.#mayRefuse && { refusedPerSecond: perSecond(this.#refusalsUs) }),
      ...(this.#refusalsUs.count > 0 && { refusedP99Ms: msAt(this.#refusalsUs, 99) }),
      p50Ms: msAt(this.#latenciesUs, 50),
      p99Ms: msAt(this.#latenciesUs, 99),
      maxMs: msAt(this.#latenciesUs, 100),
      ...(this.#lateUs.count > 0 && { sentLateP99Ms: msAt(this.#lateUs, 99) }),
    };
  }

  #record(histogram: RecordableHistogram, ms: number): void {
    const nowMs = performance.now();
    if (nowMs < this.#measuredFromMs) return;
    this.#lastMs = nowMs;
    histogram.record(asCount(ms));
  }
}

const newHistogram = () => createHistogram({ lowest: 1, highest: highestUs, figures: 3 });

// A histogram has no 0.
const asCount = (ms: number) => Math.min(highestUs, Math.max(1, Math.round(ms * usPerMs)));

const msAt = (histogram: RecordableHistogram, percentile: number) =>
  histogram.count === 0 ? 0 : histogram.percentile(percentile) / usPerMs;
