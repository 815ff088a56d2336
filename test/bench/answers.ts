import { type ProviderAnswer, httpProviders, readAnswer } from "../harness/fixtures/provider-answers.ts";
import { type Coverage, measureCoverage, fields, sumCoverage } from "../harness/expected-elements/expected-elements.ts";
import type { HttpProviderName } from "../harness/fixtures/made-up-answers.ts";
import { formatTable } from "../../shared/admin/format-table.ts";
import { contractCases } from "../shared/providers/contract-cases.ts";
import { providerFailures } from "../shared/providers/provider-failures.ts";
import { measureCost } from "./measure-cost.ts";

/** How many of the expected values were extracted. */
export interface Share {
  expected: number;
  extracted: number;
}

/** What a provider's adapter extracts from its answers. */
export interface Extraction {
  provider: HttpProviderName;
  recorded: number;
  madeUp: number;
  /** Answers that contain a page, and how many of them were read as one. */
  pages: Share;
  /** The sum over these pages. */
  coverage: Coverage;
  /** Documented failures, and how many of them have the expected kind. */
  failures: Share;
}

/** Counts what each provider's adapter extracts from answers, compared with what they contain. */
export function measureExtraction(answers: readonly ProviderAnswer[]): Extraction[] {
  return httpProviders.map((provider) => {
    const own = answers.filter((answer) => answer.provider === provider);
    const pages = own.filter(({ expected }) => expected !== undefined);
    const coverages = pages.flatMap((answer) => coverageOf(answer) ?? []);
    return {
      provider,
      recorded: own.filter(({ isRecorded }) => isRecorded).length,
      madeUp: own.filter(({ isRecorded }) => !isRecorded).length,
      pages: { expected: pages.length, extracted: coverages.length },
      coverage: sumCoverage(coverages),
      failures: failuresOf(provider),
    };
  });
}

/** Two tables: what the adapters extract from answers, and what reading them costs. */
export function answersReport(answers: readonly ProviderAnswer[], options: { measuredMs: number }): string {
  return [countTable(measureExtraction(answers)), costTable(answers, options)].join("\n");
}

function coverageOf(answer: ProviderAnswer): Coverage | undefined {
  const page = readAnswer(answer);
  return "failure" in page || answer.expected === undefined ? undefined : measureCoverage(answer.expected, page);
}

function failuresOf(provider: HttpProviderName): Share {
  const known = [...contractCases[provider].failures, ...providerFailures[provider]];
  const mapped = known.filter(([status, body, kind]) => {
    const read = readAnswer({ provider, status, body: typeof body === "string" ? body : JSON.stringify(body) });
    return "failure" in read && read.failure === kind;
  });
  return { expected: known.length, extracted: mapped.length };
}

function countTable(counts: readonly Extraction[]): string {
  const titles = ["provider", "recorded", "made up", "pages read", "elements → results", ...fields, "failures mapped"];
  const lines = counts.map(({ provider, recorded, madeUp, pages, coverage, failures }) => [
    provider,
    String(recorded),
    String(madeUp),
    shareText(pages),
    `${coverage.expected} → ${coverage.extracted}`,
    ...fields.map((field) => shareText(coverage.fields[field])),
    shareText(failures),
  ]);
  return formatTable(titles, lines);
}

/** `–` if no answer contains the field. */
function shareText({ expected, extracted }: Share): string {
  return expected === 0 ? "–" : `${extracted} of ${expected}`;
}

function costTable(answers: readonly ProviderAnswer[], options: { measuredMs: number }): string {
  const titles = ["provider", "page", "kB", "µs, median", "µs, p99", "MB/s", "× JSON.parse"];
  const lines = httpProviders.flatMap((provider) => {
    const pages = answers.filter((answer) => answer.provider === provider && answer.expected !== undefined);
    return medianAndLargest(pages).map(([size, answer]) => {
      const bytes = Buffer.byteLength(answer.body);
      // One right after the other, so that a slow moment of the machine affects both.
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
