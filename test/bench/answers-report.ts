import { Bench } from "tinybench";
import { formatTable } from "../harness/format-table.ts";
import { type ProviderAnswer, httpProviders, readAnswer } from "../harness/fixtures/provider-answers.ts";
import { type Extraction, measureExtraction } from "./answers.ts";

const exampleCharactersMax = 60;
const warmupShare = 0.5;

/** Three tables: what the adapters read; what they lose; and what reading costs. */
export function answersReport(answers: readonly ProviderAnswer[], options: { measuredMs: number }): string {
  const counts = measureExtraction(answers).filter(({ recorded, madeUp }) => recorded + madeUp > 0);
  return [countTable(counts), lostTable(counts), costTable(answers, options)].join("\n");
}

function countTable(counts: readonly Extraction[]): string {
  const titles = ["provider", "recorded", "made up", "pages", "failures mapped", "lost texts", "lost links"];
  const lines = counts.map(({ provider, recorded, madeUp, pages, failures, lost }) => [
    provider,
    ...[recorded, madeUp, pages].map(String),
    `${failures.extracted} of ${failures.expected}`,
    String(lost.filter(({ isLink }) => !isLink).length),
    String(lost.filter(({ isLink }) => isLink).length),
  ]);
  return formatTable(titles, lines);
}

/** The lost values, by their place in the answer, most frequent first. */
function lostTable(counts: readonly Extraction[]): string {
  const lines = counts.flatMap(({ provider, lost }) =>
    [...Map.groupBy(lost, ({ path }) => path)]
      .toSorted(([, one], [, other]) => other.length - one.length)
      .map(([path, values]) => [provider, path, String(values.length), exampleOf(values[0]?.value ?? "")]),
  );
  return formatTable(["provider", "lost", "times", "for example"], lines);
}

function exampleOf(value: string): string {
  const line = value.replace(/\s+/g, " ").replaceAll("|", "/");
  return line.length > exampleCharactersMax ? `${line.slice(0, exampleCharactersMax)}…` : line;
}

function costTable(answers: readonly ProviderAnswer[], options: { measuredMs: number }): string {
  const titles = ["provider", "page", "kB", "µs, median", "µs, p99", "MB/s", "× JSON.parse"];
  const lines = httpProviders.flatMap((provider) => {
    const pages = answers.filter((answer) => answer.provider === provider && "elements" in readAnswer(answer));
    return medianAndLargest(pages).map(([size, answer]) => {
      const bytes = Buffer.byteLength(answer.body);
      // Measured in succession, so that a slow moment of the machine affects both.
      const reading = measureCost(() => readAnswer(answer), options);
      const parsing = measureCost((): unknown => JSON.parse(answer.body), options);
      const numbers = [bytes / 1_000, reading.medianUs, reading.p99Us, bytes / reading.medianUs];
      const ratio = (reading.medianUs / parsing.medianUs).toFixed(1);
      const page = `${size}, ${answer.isRecorded ? "recorded" : "made up"}`;
      return [provider, page, ...numbers.map((number) => number.toFixed(0)), ratio];
    });
  });
  return formatTable(titles, lines);
}

/** The page of median size, and the largest page if it is a different one. */
function medianAndLargest(pages: readonly ProviderAnswer[]): [size: string, answer: ProviderAnswer][] {
  const bySize = pages.toSorted((a, b) => a.body.length - b.body.length);
  const median = bySize[Math.floor(bySize.length / 2)];
  const largest = bySize.at(-1);
  return [
    ...(median === undefined ? [] : [["median", median] satisfies [string, ProviderAnswer]]),
    ...(largest === undefined || largest === median ? [] : [["largest", largest] satisfies [string, ProviderAnswer]]),
  ];
}

/** Microseconds per run, after a warm-up. */
interface Cost {
  medianUs: number;
  p99Us: number;
}

/** Runs a function repeatedly for `measuredMs`. @throws what the function throws, and {Error} if the clock is too coarse. */
function measureCost(run: () => unknown, { measuredMs }: { measuredMs: number }): Cost {
  const bench = new Bench({ time: measuredMs, warmupTime: measuredMs * warmupShare, throws: true });
  const [task] = bench.add("run", run).runSync();
  if (task?.result.state !== "completed") throw new Error("The measurement is not complete.");
  const { p50, p99 } = task.result.latency;
  return { medianUs: p50 * 1_000, p99Us: p99 * 1_000 };
}
