import type { Database } from "../../shared/database/pool.ts";
import type { ProviderHttp } from "../providers/policies/http.ts";
import type { FailureKind, Provider } from "../providers/provider.ts";
import { type ListedLocation, type LocationRow, toListedLocation } from "./listed-location.ts";
import { readStoredLists, type RecordList, type StoredList, storeList } from "./stored-lists.ts";

/** A whole list has some 20 MB today. */
export const listBytesMax = 256 * 1024 * 1024;
const fetchTimeoutMs = 300_000;
/** Every list has a hundred times as many. With fewer, the provider has sent a part of it, or something else. */
const locationsMin = 1_000;
/** A list that shrinks to less than this share of the stored one is more likely cut off than shorter. */
const shareKeptMin = 0.9;

/** Why a list was not refreshed, as the end of a sentence that begins with the provider's name. The stored list stays. */
type RefreshProblem = { problem: string };

const problems: Partial<Record<FailureKind, string>> = {
  unavailable: "is unreachable or returned a server error",
  rate_limited: "refuses more calls for now",
  account_refused: "rejects our account",
  unreadable: "returned a list that is incomplete, too large or not readable",
  timeout: "did not send its list in time",
};

/**
 * Fetches the list of a provider and stores it in place of the old one. A list that is empty, incomplete or much shorter than
 * the stored one is refused.
 * @param options.acceptShorter takes a list although it is much shorter.
 */
export async function refreshList(
  provider: Provider & Required<Pick<Provider, "locations">>,
  options: {
    http: ProviderHttp;
    database: Database;
    acceptShorter: boolean;
    onProgress: (step: string) => void;
    record?: RecordList;
  },
): Promise<StoredList | RefreshProblem> {
  const { http, database, acceptShorter, onProgress, record } = options;
  const { request: listRequest, read } = provider.locations;
  onProgress("fetching its list");
  const limits = { timeoutMs: fetchTimeoutMs, signal: new AbortController().signal };
  const answer = await http.send(provider, listRequest, limits);
  const rows = "failure" in answer ? answer : read(answer);
  if ("failure" in rows) return { problem: problems[rows.failure] ?? "did not accept the request for its list" };
  const locations = toListedLocations(rows);
  onProgress(`read ${rows.length} rows, ${locations.length} of them cities and regions`);
  const stored = (await readStoredLists(database)).find((list) => list.provider === provider.name);
  const expected = Math.max(locationsMin, acceptShorter ? 0 : Math.ceil((stored?.locations ?? 0) * shareKeptMin));
  if (locations.length < expected) return { problem: tooShort(locations.length, stored) };
  return storeList(database, provider.name, {
    locations,
    onProgress: (count) => onProgress(`stored ${count} of ${locations.length}`),
    record,
  });
}

/** Each name once. A market with the same full name as a city is the city. */
function toListedLocations(rows: readonly LocationRow[]): ListedLocation[] {
  const byName = new Map<string, ListedLocation>();
  for (const row of rows) {
    const location = toListedLocation(row);
    if (location && byName.get(location.name)?.isMarket !== false) byName.set(location.name, location);
  }
  return [...byName.values()];
}

function tooShort(count: number, stored: StoredList | undefined): string {
  if (count < locationsMin) return `returned ${count} locations, which is not its whole list`;
  return `returned ${count} locations, but the stored list has ${stored?.locations}; add --accept-shorter to replace it`;
}
