import type { ErrorDetails } from "../../shared/errors.ts";
import type { Trace } from "../providers/policies/trace.ts";
import type { Result } from "../../shared/results.ts";

/** The error codes that an engine can answer with. */
export const engineErrors = ["engine_error", "engine_timeout", "query_rejected"] as const;

/** What an engine answers to a query: all results in rank order, or the error for the caller. */
export type EngineAnswer =
  | {
      ok: true;
      results: readonly Result[];
      totalResultsCount: number;
      trace: Trace;
      /** What was searched instead of the keyword, if the spelling was corrected. */
      searchedKeyword?: string;
      /** Whether results at the end were left out, because an answer with them would be too large. */
      truncated?: true;
    }
  | {
      ok: false;
      code: (typeof engineErrors)[number];
      details: ErrorDetails;
      trace: Trace;
      /** Whether the same search with a later deadline may succeed. */
      outOfTime?: boolean;
    };
