import { countFitting } from "../../shared/fitting-results.ts";
import { charactersOf } from "../providers/build-element.ts";
import type { Result } from "../../shared/results.ts";
import { answerBytesMax } from "../../shared/search-answer.ts";

/** For the fields of an answer beside its results: the query has at most 2,000 characters of up to four bytes. */
const otherBytes = 16 * 1024;
const resultsBytesMax = answerBytesMax - otherBytes;
/** In UTF-8, escaped where JSON has to. */
const characterBytesMax = 3;

/**
 * The results from the first one on that fit into an answer. Of an oversized page the last ones are left out, so that those
 * that stay keep their ranks.
 */
export function boundResults(results: readonly Result[]): { results: readonly Result[]; truncated: boolean } {
  const characters = results.reduce((sum, result) => sum + charactersOf(result), 0);
  // Of nearly all answers, counting is enough.
  if (characters * characterBytesMax <= resultsBytesMax) return { results, truncated: false };
  const fitting = countFitting(results, resultsBytesMax);
  return { results: results.slice(0, fitting), truncated: fitting < results.length };
}
