import { isSameOrSubdomain } from "../shared/query/domains.ts";
import type { Query } from "../shared/query/query.ts";
import { serializeAnswer } from "../shared/queue/replies.ts";
import type { SearchJob } from "../shared/queue/search-job.ts";
import type { Result, ResultType } from "../shared/results.ts";
import type { EngineAnswer } from "./engine/google-engine.ts";

const compactTypes: readonly ResultType[] = ["organic"];

/** The body of a charged search, in the format that its caller ordered, as the bytes that the caller gets. */
export function writeAnswerBody(job: SearchJob, answer: Extract<EngineAnswer, { ok: true }>): Buffer {
  const { format, ...rest } = job.query;
  const { searchedKeyword, totalResultsCount, truncated } = answer;
  const results = orderedResults(answer.results, job.query);
  const corrected = searchedKeyword === undefined ? undefined : { searchedKeyword };
  const credits = { creditsCharged: job.priceMils, creditsRemaining: job.remainingMils };
  const cut = truncated && { truncated };
  const { requestId } = job;
  if (format === undefined) {
    const query = { ...rest, ...corrected };
    return serializeAnswer({ requestId, query, ...credits, totalResultsCount, ...cut, results });
  }
  const query = { ...rest, format, ...corrected };
  return serializeAnswer({ requestId, query, ...credits, ...cut, results: results.map(shorten) });
}

/** The results that the caller ordered. They keep their ranks on the whole page. */
function orderedResults(results: readonly Result[], { targetDomain, types, format }: Query): Result[] {
  const wanted = format === "compact" ? compactTypes : types;
  return results.filter(
    ({ type, domain }) =>
      (wanted === undefined || wanted.includes(type)) &&
      (targetDomain === undefined || isSameOrSubdomain(domain, targetDomain)),
  );
}

const shorten = ({ title, url, description }: Result) => ({ title, url, description });
