/** The metrics of a process, as its ops port returns them. */
export class Exposition {
  readonly text: string;
  /** Values by series: the name with its labels in alphabetical order, as in `name{a="1",b="2"}`. */
  readonly #values: Map<string, number>;

  private constructor(text: string) {
    this.text = text;
    const series = text.split("\n").flatMap((line) => {
      const [, name = "", labels, value = ""] = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
      return name ? [[seriesOf(name, labels ?? ""), Number(value)] as const] : [];
    });
    this.#values = new Map(series);
  }

  static async of(process: { opsUrl: string }): Promise<Exposition> {
    return new Exposition(await (await fetch(`${process.opsUrl}/metrics`)).text());
  }

  /** Undefined if the process has no value for it. */
  value(series: string): number | undefined {
    return this.#values.get(series);
  }

  /** Every series of a metric with its value. */
  all(metric: string): Record<string, number> {
    const own = [...this.#values].filter(([series]) => series === metric || series.startsWith(`${metric}{`));
    return Object.fromEntries(own.map(([series, value]) => [series.slice(metric.length), value]));
  }

  /** The declared metrics, with or without a value. */
  names(): string[] {
    return [...this.text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name ?? "");
  }

  labelNames(): Set<string> {
    const labels = [...this.#values.keys()].flatMap((series) => [...series.matchAll(/[{,]([a-z_]+)="/g)]);
    return new Set(labels.map(([, name]) => name ?? ""));
  }
}

/** Whether an API has seen a worker's heartbeat. From then on it admits searches. */
export async function seesWorkers(api: { opsUrl: string }): Promise<boolean> {
  return ((await Exposition.of(api)).value("workers_reporting") ?? 0) > 0;
}

type Process = { opsUrl: string };

/** A series, summed over processes. One that has no value for it counts as 0. */
export async function summed(processes: readonly Process[], series: string): Promise<number> {
  const seen = await Promise.all(processes.map((process) => Exposition.of(process)));
  return seen.reduce((sum, exposition) => sum + (exposition.value(series) ?? 0), 0);
}

/** The provider calls that all processes counted as unpaid. */
export const unpaidCalls = ({ apis, workers }: { apis: Process[]; workers: Process[] }): Promise<number> =>
  summed([...apis, ...workers], "unpaid_provider_calls_total");

function seriesOf(name: string, labels: string): string {
  const sorted = (labels.match(/[a-z_]+="(?:\\.|[^"\\])*"/gi) ?? []).toSorted();
  return sorted.length > 0 ? `${name}{${sorted.join(",")}}` : name;
}
