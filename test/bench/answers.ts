import { type ProviderAnswer, httpProviders, readAnswer } from "../harness/fixtures/provider-answers.ts";
import type { HttpProviderName } from "../harness/fixtures/made-up-answers.ts";
import { findLostValues, type LostValue } from "../harness/omissions/lost-values.ts";
import { coveredIn } from "../harness/omissions/omissions.ts";
import { providerFailures } from "../worker/providers/provider-failures.ts";

/** What a provider's adapter extracts from its answers. */
export interface Extraction {
  provider: HttpProviderName;
  recorded: number;
  madeUp: number;
  /** How many answers were read as a page. */
  pages: number;
  /** Values of these answers that the pages lack and no omission covers. */
  lost: LostValue[];
  /** Documented failures, and how many of these get the expected kind. */
  failures: { expected: number; extracted: number };
}

/** Compares what each adapter extracts from answers with what they contain. */
export function measureExtraction(answers: readonly ProviderAnswer[]): Extraction[] {
  return httpProviders.map((provider) => {
    const own = answers.filter((answer) => answer.provider === provider);
    const lostByPage = own.flatMap((answer) => {
      const lost = lostValuesOf(answer);
      return lost === undefined ? [] : [lost];
    });
    return {
      provider,
      recorded: own.filter(({ isRecorded }) => isRecorded).length,
      madeUp: own.filter(({ isRecorded }) => !isRecorded).length,
      pages: lostByPage.length,
      lost: lostByPage.flat(),
      failures: measureFailures(provider),
    };
  });
}

function lostValuesOf(answer: ProviderAnswer): LostValue[] | undefined {
  const page = readAnswer(answer);
  if ("failure" in page) return undefined;
  return findLostValues(JSON.parse(answer.body), page, coveredIn(answer.provider));
}

function measureFailures(provider: HttpProviderName): Extraction["failures"] {
  const known = providerFailures[provider];
  const mapped = known.filter(([status, body, kind]) => {
    const read = readAnswer({ provider, status, body: typeof body === "string" ? body : JSON.stringify(body) });
    return "failure" in read && read.failure === kind;
  });
  return { expected: known.length, extracted: mapped.length };
}
