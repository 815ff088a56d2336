import { z } from "zod";
import { readSearchLedger } from "../../../shared/credits/ledger-pages.ts";
import { readSearchEntries } from "../../../shared/credits/history.ts";
import { readStoredAnswers } from "../../../shared/credits/stored-answers.ts";
import type { Database } from "../../../shared/database/pool.ts";
import type { SearchEntry } from "../../../shared/search-log/find-searches.ts";
import { readSearches } from "../../../shared/search-log/read-search-log.ts";
import { compactResult } from "../../../shared/search-answer.ts";

/** A larger answer is not shown: to write it would hold up the searches of this process. */
export const shownBytesMax = 256 * 1024;

const shownResult = compactResult.partial().extend({ type: z.string().optional(), rank: z.number().optional() });
/** As much of an answer as the page shows; every version of an answer has it. */
const answerBody = z.object({ results: z.array(z.looseObject(shownResult.shape)) });
export type ShownResult = z.infer<typeof shownResult>;

/** The answer of a search: it is there, it is too large to show, or it is not kept (any more). */
export type ShownAnswer = { kind: "kept"; results: ShownResult[]; json: string } | { kind: "large" } | { kind: "none" };

/** One search of an organization. */
export interface ShownSearch {
  entry: SearchEntry;
  ledger: Awaited<ReturnType<typeof readSearchLedger>>;
  answer: ShownAnswer;
}

/** Reads a search of an organization. @returns undefined if the ledger has none with this id, or of another organization. */
export async function readSearch(
  database: Database,
  organizationId: string,
  requestId: string,
): Promise<ShownSearch | undefined> {
  const [decided] = await readSearchEntries(database, organizationId, [requestId]);
  if (!decided) return undefined;
  const search = (await readSearches(database, organizationId, [requestId])).get(requestId);
  const entry = { ...decided, search };
  const ledger = await readSearchLedger(database, requestId);
  return { entry, ledger, answer: await readAnswer(database, organizationId, entry) };
}

/** The answer under the key of a search, if this search paid for it. */
async function readAnswer(database: Database, organizationId: string, entry: SearchEntry): Promise<ShownAnswer> {
  const { outcome, search } = entry;
  const hash = search?.keyHash;
  if (outcome !== "charged" || !hash) return { kind: "none" };
  const [stored] = (await readStoredAnswers(database, [{ organizationId, hash }])).values();
  if (stored?.requestId !== search.requestId) return { kind: "none" };
  if (stored.body.length > shownBytesMax) return { kind: "large" };
  const json: unknown = JSON.parse(stored.body.toString());
  return { kind: "kept", results: answerBody.parse(json).results, json: JSON.stringify(json, null, 2) };
}
