import { z } from "zod";
import type { Database } from "../../../shared/database/pool.ts";
import { rowOf } from "../../../shared/database/row.ts";
import { readKeptAnswer } from "../../../shared/credits/kept-answers.ts";
import { nameOfKey, readStoredAnswers } from "../../../shared/credits/stored-answers.ts";
import { queryFingerprint, searchedPart } from "../../../shared/query/query.ts";
import { orderedResults, shortened } from "../../../shared/search-answer.ts";
import type { LoggedSearch } from "../../../shared/search-log/read-search-log.ts";
import { type ShownElement, shownBytesMax } from "./answer-view.ts";

/** Answers of searches that people open: those under an Idempotency-Key for 24 hours, and those that their organization keeps. */

/** The answer of a search: readable, too large to show, or not (or no longer) kept. */
export type ShownAnswer =
  | { kind: "kept"; results: ShownElement[]; json: string }
  | { kind: "large" }
  | { kind: "none" };

/** A search whose answer is read. `keyHash` is null without a key, and `query` the one by whose domain, types and format it is shown. */
type Answered = Pick<LoggedSearch, "requestId" | "keyHash" | "query">;

/** Reads the answer of a search: the bytes that its caller got if it paid under its key, else what was kept of it. */
export async function readAnswer(
  database: Database,
  organizationId: string,
  { requestId, keyHash: hash, query }: Answered,
): Promise<ShownAnswer> {
  const stored = hash === null ? undefined : await readUnderKey(database, { organizationId, hash });
  // A worker wrote it.
  if (stored?.requestId === requestId) return shownAnswer(() => JSON.parse(stored.body.toString()), stored.body.length);
  const kept = await readKeptAnswer(database, organizationId, requestId);
  if (!kept) return { kind: "none" };
  const { totalResultsCount, truncated } = kept;
  const ordered = orderedResults(kept.results, query);
  const results = query.format === "compact" ? ordered.map(shortened) : ordered;
  const answer = { requestId, query, totalResultsCount, ...(truncated && { truncated }), results };
  return shownAnswer(() => answer, Buffer.byteLength(JSON.stringify(answer)));
}

const readUnderKey = async (database: Database, key: { organizationId: string; hash: string }) =>
  (await readStoredAnswers(database, [key])).get(nameOfKey(key));

function shownAnswer(read: () => { results: ShownElement[] }, bytes: number): ShownAnswer {
  if (bytes > shownBytesMax) return { kind: "large" };
  const answer = read();
  return { kind: "kept", results: answer.results, json: JSON.stringify(answer, null, 2) };
}

const previousRow = rowOf({ requestId: z.string(), keyHash: z.string().nullable() });

/**
 * Finds the last search before this one that has an answer to the same query.
 * @param only the token that it must have used, if any.
 * @returns what {@link readAnswer} reads, with the domain, types and format of this search.
 */
export async function findPrevious(
  database: Database,
  organizationId: string,
  { at, requestId, query }: LoggedSearch,
  only: string | undefined,
): Promise<Answered | undefined> {
  // The log does not name the engine, because there is one.
  const searched = searchedPart({ ...query, engine: "google" });
  const { rows } = await database.query({
    name: "previous_answer",
    text: "select * from previous_answer($1, $2, $3, $4, $5)",
    values: [organizationId, at, requestId, queryFingerprint(searched), only ?? null],
  });
  return rows[0] && { ...previousRow.parse(rows[0]), query };
}
