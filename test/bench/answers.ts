import { type ProviderAnswer, httpProviders, readAnswer } from "../harness/fixtures/provider-answers.ts";
import { type Coverage, measureCoverage, fields, sumCoverage } from "../harness/expected-elements/expected-elements.ts";
import type { HttpProviderName } from "../harness/fixtures/made-up-answers.ts";
import { formatTable } from "../../shared/admin/format-table.ts";
import { contractCases } from "../shared/providers/contract-cases.ts";
import { providerFailures } from "../shared/providers/provider-failures.ts";
import { measureCost } from "./measure-cost.ts";

/** Part of a whole: how many of how many. */
export interface Share {
  held: number;
  filled: number;
}

/** What a provider's adapter makes of its answers. */
export interface Extraction {
  provider: HttpProviderName;
  recorded: number;
  madeUp: number;
  /** Answers that hold a page, and how many of them were read as one. */
  pages: Share;
  /** Over all of these pages. */
  coverage: Coverage;
  /** Documented failures, and how many of them came out as what they mean. */
  failures: Share;
}

/** Counts what answers hold, and what of it comes out; by provider. */
export function measureExtraction(answers: readonly ProviderAnswer[]): Extraction[] {
  return httpProviders.map((provider) => {
    const own = answers.filter((answer) => answer.provider === provider);
    const pages = own.filter(({ expected }) => expected !== undefined);
    const coverages = pages.flatMap((answer) => coverageIn(answer) ?? []);
    return {
      provider,
      recorded: own.filter(({ isRecorded }) => isRecorded).length,
      madeUp: own.filter(({ isRecorded }) => !isRecorded).length,
      pages: { held: pages.length, filled: coverages.length },
      coverage: sumCoverage(coverages),
      failures: failuresOf(provider),
    };
  });
}

/** Tells what comes out of answers, and what it costs to read them: two tables. */
export function reportOf(answers: readonly ProviderAnswer[], options: { measuredMs: number }): string {
  return [countTable(measureExtraction(answers)), costTable(answers, options)].join("\n");
}

function coverageIn(answer: ProviderAnswer): Coverage | undefined {
  const page = readAnswer(answer);
  return "failure" in page || answer.expected === undefined ? undefined : measureCoverage(answer.expected, page);
}

function failuresOf(provider: HttpProviderName): Share {
  const known = [...contractCases[provider].failures, ...providerFailures[provider]];
  const mapped = known.filter(([status, body, kind]) => {
    const told = readAnswer({ provider, status, body: typeof body === "string" ? body : JSON.stringify(body) });
    return "failure" in told && told.failure === kind;
  });
  return { held: known.length, filled: mapped.length };
}

function countTable(counts: readonly Extraction[]): string {
  const titles = ["provider", "recorded", "made up", "pages read", "elements → results", ...fields, "failures mapped"];
  const lines = counts.map(({ provider, recorded, madeUp, pages, coverage, failures }) => [
    provider,
    String(recorded),
    String(madeUp),
    shareText(pages),
    `${coverage.held} → ${coverage.extracted}`,
    ...fields.map((field) => shareText(coverage.fields[field])),
    shareText(failures),
  ]);
  return formatTable(titles, lines);
}

/** Where no answer holds anything, there is nothing to be filled. */
function shareText({ held, filled }: Share): string {
  return held === 0 ? "–" : `${filled} of ${held}`;
}

function costTable(answers: readonly ProviderAnswer[], options: { measuredMs: number }): string {
  const titles = ["provider", "page", "kB", "µs, median", "µs, 99 of 100", "MB/s", "times JSON.parse"];
  const lines = httpProviders.flatMap((provider) => {
    const pages = answers.filter((answer) => answer.provider === provider && answer.expected !== undefined);
    return usualAndLargest(pages).map(([size, answer]) => {
      const bytes = Buffer.byteLength(answer.body);
      // One right after the other: a machine that is slow just now is slow for both.
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

/** The page of median size, and the largest where it is another one. */
function usualAndLargest(pages: readonly ProviderAnswer[]): [size: string, answer: ProviderAnswer][] {
  const bySize = pages.toSorted((a, b) => a.body.length - b.body.length);
  const usual = bySize[Math.floor(bySize.length / 2)];
  const largest = bySize.at(-1);
  return [
    ...(usual === undefined ? [] : [["usual", usual] satisfies [string, ProviderAnswer]]),
    ...(largest === undefined || largest === usual ? [] : [["largest", largest] satisfies [string, ProviderAnswer]]),
  ];
}
