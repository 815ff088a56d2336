import { readHistory } from "../../api/ledger/history.ts";
import type { Database } from "../../shared/database/pool.ts";

const perPage = 1_000;
/** Raw answers are kept for an hour at most, from the first call of a search, which ends minutes before its decision at most. */
const recentMs = 65 * 60_000;

/** The ids of an organization's searches of which there may be raw answers, newest first. */
export async function* listRecentSearches(database: Database, organizationId: string): AsyncGenerator<string> {
  for (let before: string | undefined; ; ) {
    const page = await readHistory(database, organizationId, { filter: "all", before, limit: perPage });
    for (const entry of page.entries) {
      if (Date.now() - entry.at.getTime() > recentMs) return;
      if ("requestId" in entry) yield entry.requestId;
    }
    if (page.older === undefined) return;
    before = page.older;
  }
}
