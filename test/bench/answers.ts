import { type ProviderAnswer, httpProviders, readAnswer } from "../harness/fixtures/provider-answers.ts";
import {
  type Coverage,
  measureCoverage,
  measureCoverageByType,
  sumCoverage,
} from "../harness/expected-elements/expected-elements.ts";
import type { HttpProviderName } from "../harness/fixtures/made-up-answers.ts";
import { dataforseoOmissions } from "../harness/omissions/dataforseo.ts";
import { findLostValues, type LostValue } from "../harness/omissions/lost-values.ts";
import { coverWith, type Omission } from "../harness/omissions/omissions.ts";
import { searchapiOmissions } from "../harness/omissions/searchapi.ts";
import { searxngOmissions } from "../harness/omissions/searxng.ts";
import { serpapiOmissions } from "../harness/omissions/serpapi.ts";
import { serperOmissions } from "../harness/omissions/serper.ts";
import { providerFailures } from "../worker/providers/provider-failures.ts";

/** The expected values, and how many of them were extracted. */
export interface Share {
  expected: number;
  extracted: number;
}

/** What a provider's adapter extracts from its answers. */
export interface Extraction {
  provider: HttpProviderName;
  recorded: number;
  madeUp: number;
  /** Answers that contain a page, and how many of these were read as one. */
  pages: Share;
  /** The sum over these pages. */
  coverage: Coverage;
  /** The same by type of element. */
  coverageByType: Map<string, Coverage>;
  /** Values of the answers that the pages lack and no omission covers. */
  lost: LostValue[];
  /** Documented failures, and how many of these get the expected kind. */
  failures: Share;
}

const omissions: Record<HttpProviderName, readonly Omission[]> = {
  serpapi: serpapiOmissions,
  serper: serperOmissions,
  searxng: searxngOmissions,
  dataforseo: dataforseoOmissions,
  searchapi: searchapiOmissions,
};

/** Compares what each adapter extracts from answers with what they contain. */
export function measureExtraction(answers: readonly ProviderAnswer[]): Extraction[] {
  return httpProviders.map((provider) => {
    const own = answers.filter((answer) => answer.provider === provider);
    const pages = own.filter(({ expected }) => expected !== undefined);
    const measured = pages.flatMap((answer) => measurePage(answer) ?? []);
    const coveragesByType = Map.groupBy(
      measured.flatMap(({ byType }) => [...byType]),
      ([type]) => type,
    );
    return {
      provider,
      recorded: own.filter(({ isRecorded }) => isRecorded).length,
      madeUp: own.filter(({ isRecorded }) => !isRecorded).length,
      pages: { expected: pages.length, extracted: measured.length },
      coverage: sumCoverage(measured.map(({ coverage }) => coverage)),
      coverageByType: new Map(
        [...coveragesByType].map(([type, coverages]) => [type, sumCoverage(coverages.map(([, each]) => each))]),
      ),
      lost: measured.flatMap(({ lost }) => lost),
      failures: measureFailures(provider),
    };
  });
}

interface MeasuredPage {
  coverage: Coverage;
  byType: Map<string, Coverage>;
  lost: LostValue[];
}

function measurePage(answer: ProviderAnswer): MeasuredPage | undefined {
  const page = readAnswer(answer);
  if ("failure" in page || answer.expected === undefined) return undefined;
  return {
    coverage: measureCoverage(answer.expected, page),
    byType: measureCoverageByType(answer.expected, page),
    lost: findLostValues(JSON.parse(answer.body), page, coverWith(omissions[answer.provider])),
  };
}

function measureFailures(provider: HttpProviderName): Share {
  const known = providerFailures[provider];
  const mapped = known.filter(([status, body, kind]) => {
    const read = readAnswer({ provider, status, body: typeof body === "string" ? body : JSON.stringify(body) });
    return "failure" in read && read.failure === kind;
  });
  return { expected: known.length, extracted: mapped.length };
}
