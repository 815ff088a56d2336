import { readSearchLedger } from "../../ledger/ledger-pages.ts";
import { readSearchEntries } from "../../ledger/history.ts";
import { nameOfKey, readPaidKeys, readStoredAnswers } from "../../../shared/credits/stored-answers.ts";
import type { Database } from "../../../shared/database/pool.ts";
import type { SearchEntry } from "../../ledger/find-searches.ts";
import { readSearches } from "../../../shared/search-log/read-search-log.ts";
import type { ShownElement } from "./results-page.ts";

/** A larger answer is not shown: to write it would hold up the searches of this process. */
export const shownBytesMax = 256 * 1024;

/** The answer of a search: it is there, it is too large to show, or it is not kept (any more). */
export type ShownAnswer =
  | { kind: "kept"; results: ShownElement[]; json: string }
  | { kind: "large" }
  | { kind: "none" };

/** One search of an organization. */
export interface ShownSearch {
  entry: SearchEntry;
  ledger: Awaited<ReturnType<typeof readSearchLedger>>;
  answer: ShownAnswer;
  /** The search that had paid under the key of this one, which was therefore not charged; undefined if it is not known (any more). */
  paidBy: string | undefined;
}

/** Reads a search of an organization. @returns undefined if none with this id is decided, or it is of another organization. */
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
  const answer = await readAnswer(database, organizationId, entry);
  return { entry, ledger, answer, paidBy: await readPayer(database, organizationId, entry) };
}

async function readPayer(
  database: Database,
  organizationId: string,
  { at, search, ...entry }: SearchEntry,
): Promise<string | undefined> {
  const isRepeat = "reason" in entry && (entry.reason === "already_paid" || entry.reason === "idempotency_key_reused");
  if (!isRepeat || !search?.keyHash) return undefined;
  const key = { organizationId, hash: search.keyHash };
  const paid = (await readPaidKeys(database, [key])).get(nameOfKey(key));
  const [payer] = paid ? await readSearchEntries(database, organizationId, [paid.requestId]) : [];
  // After 24 hours the key may have paid anew. That search is not the one that this repeat followed.
  return payer && payer.at <= at ? paid?.requestId : undefined;
}

/** The answer under the key of a search, if this search paid for it. */
async function readAnswer(database: Database, organizationId: string, entry: SearchEntry): Promise<ShownAnswer> {
  const { outcome, search } = entry;
  const hash = search?.keyHash;
  if (outcome !== "charged" || !hash) return { kind: "none" };
  const [stored] = (await readStoredAnswers(database, [{ organizationId, hash }])).values();
  if (stored?.requestId !== search.requestId) return { kind: "none" };
  if (stored.body.length > shownBytesMax) return { kind: "large" };
  // A worker wrote it.
  const answer: { results: ShownElement[] } = JSON.parse(stored.body.toString());
  return { kind: "kept", results: answer.results, json: JSON.stringify(answer, null, 2) };
}
