import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const secondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export type Declare = ReturnType<typeof declareIn>;

/** Declares metrics in one registry. */
export function declareIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Counter({ name, help, labelNames: [...labelNames], registers }),
    gauge: <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Gauge({ name, help, labelNames: [...labelNames], registers }),
    histogram: <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Histogram({ name, help, labelNames: [...labelNames], buckets: secondsBuckets, registers }),
  };
}

/** Lets a counter begin at 0 for each of these values of its label, so that a rate includes the first increase. */
export function startAtZero<Label extends string>(
  counter: Counter<Label>,
  label: Label,
  values: readonly string[],
): void {
  // The computed key is the counter's own label, which TypeScript widens to string.
  for (const value of values) counter.inc({ [label]: value } as Record<Label, string>, 0);
}
