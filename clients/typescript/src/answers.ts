import type { components } from "./schema.ts";

type Schemas = components["schemas"];

export type SearchRequest = Schemas["SearchRequest"];
export type ResultType = Schemas["Result"]["type"];

/** One element of the page. A union by `type`: a `switch` on it, or `Extract<Result, { type: "paid" }>`, narrows it. */
export type Result = { [Type in ResultType]: Omit<Schemas["Result"], "type"> & { type: Type } }[ResultType];

/** The answer in the format `full`. */
export type SearchAnswer = Omit<Schemas["SearchAnswer"], "results"> & { results: Result[] };

/** An organic result in short. */
export type CompactResult = Schemas["CompactResult"];

/** The answer in the format `compact`. */
export type CompactSearchAnswer = Schemas["CompactSearchAnswer"];

/** The available credit, the plan, and the limits that apply to the token. */
export type Usage = Schemas["Usage"];

/** The errors of the API, as its document describes them: a union by `code`. */
export type ApiError = {
  [Name in keyof Schemas]: Schemas[Name] extends { code: string; message: string; details: object }
    ? Schemas[Name]
    : never;
}[keyof Schemas];

/** The details of the error with this code. */
export type DetailsOf<Code extends ApiError["code"]> = Extract<ApiError, { code: Code }>["details"];

/** An answer with what came around it. */
export interface Reply<Answer> {
  data: Answer;
  status: number;
  headers: Headers;
  requestId: string;
  /** Under which a repeat of this search is free for 24 hours; of a search only. */
  idempotencyKey: string | undefined;
  /** Whether an earlier request under the same key had paid for this answer. */
  isReplay: boolean;
  /** How many requests were sent until the answer came. */
  attempts: number;
}

/** A promise of an answer. `withResponse` also gives its headers, ids and number of attempts. */
export type PendingAnswer<Answer> = Promise<Answer> & { withResponse: () => Promise<Reply<Answer>> };
