import { type Answer, askedProviders, readAnswer } from "../harness/fixtures/answers.ts";
import { type Coverage, coverageOf, fields, sumOf } from "../harness/expected-elements/expected-elements.ts";
import type { AskedProvider } from "../harness/fixtures/made-up-answers.ts";
import { formatTable } from "../../shared/admin/format-table.ts";
import { entries } from "../shared/providers/contract-entries.ts";
import { refusals } from "../shared/providers/refusals.ts";
import { costOf } from "./measure.ts";

/** Part of a whole: how many of how many. */
export interface Share {
  held: number;
  filled: number;
}

/** What a provider's adapter makes of its answers. */
export interface Count {
  provider: AskedProvider;
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
export function countAnswers(answers: readonly Answer[]): Count[] {
  return askedProviders.map((provider) => {
    const own = answers.filter((answer) => answer.provider === provider);
    const pages = own.filter(({ holds }) => holds !== undefined);
    const coverages = pages.flatMap((answer) => coverageIn(answer) ?? []);
    return {
      provider,
      recorded: own.filter(({ isRecorded }) => isRecorded).length,
      madeUp: own.filter(({ isRecorded }) => !isRecorded).length,
      pages: { held: pages.length, filled: coverages.length },
      coverage: sumOf(coverages),
      failures: failuresOf(provider),
    };
  });
}

/** Tells what comes out of answers, and what it costs to read them: two tables. */
export function reportOf(answers: readonly Answer[], options: { measuredMs: number }): string {
  return [countTable(countAnswers(answers)), costTable(answers, options)].join("\n");
}

function coverageIn(answer: Answer): Coverage | undefined {
  const page = readAnswer(answer);
  return "failure" in page || answer.holds === undefined ? undefined : coverageOf(answer.holds, page);
}

function failuresOf(provider: AskedProvider): Share {
  const known = [...entries[provider].failures, ...refusals[provider]];
  const mapped = known.filter(([status, body, kind]) => {
    const told = readAnswer({ provider, status, body: typeof body === "string" ? body : JSON.stringify(body) });
    return "failure" in told && told.failure === kind;
  });
  return { held: known.length, filled: mapped.length };
}

function countTable(counts: readonly Count[]): string {
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

function costTable(answers: readonly Answer[], options: { measuredMs: number }): string {
  const titles = ["provider", "page", "kB", "µs, median", "µs, 99 of 100", "MB/s", "times JSON.parse"];
  const lines = askedProviders.flatMap((provider) => {
    const pages = answers.filter((answer) => answer.provider === provider && answer.holds !== undefined);
    return usualAndLargest(pages).map(([size, answer]) => {
      const bytes = Buffer.byteLength(answer.body);
      // One right after the other: a machine that is slow just now is slow for both.
      const reading = costOf(() => readAnswer(answer), options);
      const parsing = costOf((): unknown => JSON.parse(answer.body), options);
      const numbers = [bytes / 1_000, reading.medianUs, reading.p99Us, bytes / reading.medianUs];
      const ratio = (reading.medianUs / parsing.medianUs).toFixed(1);
      const page = `${size}, ${answer.isRecorded ? "recorded" : "made up"}`;
      return [provider, page, ...numbers.map((number) => number.toFixed(0)), ratio];
    });
  });
  return formatTable(titles, lines);
}

/** The page of median size, and the largest where it is another one. */
function usualAndLargest(pages: readonly Answer[]): [size: string, answer: Answer][] {
  const bySize = pages.toSorted((a, b) => a.body.length - b.body.length);
  const usual = bySize[Math.floor(bySize.length / 2)];
  const largest = bySize.at(-1);
  return [
    ...(usual === undefined ? [] : [["usual", usual] satisfies [string, Answer]]),
    ...(largest === undefined || largest === usual ? [] : [["largest", largest] satisfies [string, Answer]]),
  ];
}
