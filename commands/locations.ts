import type { Command } from "commander";
import { recordAudit } from "../shared/audit/audit.ts";
import type { Config } from "../shared/config.ts";
import { type ListedLocation, type LocationRow, toListedLocation } from "../worker/locations/listed-location.ts";
import {
  readStoredLists,
  type RecordList,
  removeList,
  type StoredList,
  storeList,
} from "../worker/locations/stored-lists.ts";
import type { ProviderHttp } from "../worker/providers/policies/http.ts";
import type { FailureKind, Provider } from "../worker/providers/provider.ts";
import { CommandRefused } from "./refusals.ts";
import { type CommandContext, exitCodes, type RunCommand } from "./run-command.ts";

/** A whole list has some 20 MB today. */
const listBytesMax = 256 * 1024 * 1024;
const fetchTimeoutMs = 300_000;
/** Every list has a hundred times as many. With fewer, the provider has sent a part of it, or something else. */
const locationsMin = 1_000;
/** A list that shrinks to less than this share of the stored one is more likely cut off than shorter. */
const shareKeptMin = 0.9;
const msPerDay = 86_400_000;

export function addLocationCommands(program: Command, run: RunCommand): void {
  const locations = program
    .command("locations")
    .description("locations: the providers' own lists of supported cities and regions");
  locations
    .command("refresh")
    .description(
      "fetch and store the list of each provider of SERP_PROVIDERS that publishes one; exit 1 if one was not replaced",
    )
    .option("--accept-shorter", "replace a list even if the new one is much shorter")
    .action(({ acceptShorter = false }: { acceptShorter?: boolean }) =>
      run((context) => refresh(context, acceptShorter), {
        exitCode: ({ failed }) => (failed.length > 0 ? exitCodes.refused : 0),
      }),
    );
  locations
    .command("list")
    .description("list the stored lists with their dates")
    .action(() => run(async ({ database }) => ({ lists: (await readStoredLists(database)).map(describe) })));
  locations
    .command("remove")
    .description("remove a stored list; the provider then gets cities and regions as callers wrote them")
    .argument("<provider>", "the provider's name")
    .action((provider: string) => run((context) => remove(context, provider)));
}

async function refresh(context: CommandContext, acceptShorter: boolean) {
  // Loaded on demand: the providers and their HTTP client would add to the start of every other command.
  const { openProviderHttp } = await import("../worker/providers/policies/http.ts");
  const providers = await providersWithList(context.config);
  const http = openProviderHttp({ bodyBytesMax: listBytesMax });
  const [lists, failed]: [object[], object[]] = [[], []];
  try {
    // One after the other: each list takes some hundred megabytes while it is read.
    for (const provider of providers) {
      const refreshed = await refreshList(context, provider, { http, acceptShorter });
      if ("problem" in refreshed) {
        failed.push({ provider: provider.name, problem: refreshed.problem });
        context.warn(`${provider.name} ${refreshed.problem}. The stored list was not changed.`);
      } else lists.push(describe(refreshed));
    }
  } finally {
    await http.close();
  }
  return { lists, failed };
}

/** @throws {CommandRefused} if there is none. */
async function providersWithList(config: Config) {
  const { openProviders } = await import("../worker/providers/registry.ts");
  const providers = openProviders(config).filter(publishesList);
  if (providers.length > 0) return providers;
  throw new CommandRefused("No provider of SERP_PROVIDERS publishes a list of its locations.");
}

type ListingProvider = Provider & Required<Pick<Provider, "locations">>;

const publishesList = (provider: Provider): provider is ListingProvider => provider.locations !== undefined;

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
 * Fetches the list of a provider and stores it in place of the old one. A list that is empty or incomplete is refused; so is one
 * that is much shorter than the stored one, unless `acceptShorter`.
 */
async function refreshList(
  context: CommandContext,
  provider: ListingProvider,
  { http, acceptShorter }: { http: ProviderHttp; acceptShorter: boolean },
): Promise<StoredList | RefreshProblem> {
  const { database, warn } = context;
  const onProgress = (step: string) => warn(`${provider.name}: ${step}`);
  const { request: listRequest, read } = provider.locations;
  onProgress("fetching its list");
  const answer = await http.send(provider, listRequest, { timeoutMs: fetchTimeoutMs });
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
    record: recorderOf(context, "locations.refreshed", provider.name),
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

async function remove(context: CommandContext, provider: string) {
  const record = recorderOf(context, "locations.removed", provider);
  if (!(await removeList(context.database, provider, record)))
    throw new CommandRefused(`There is no stored list of "${provider}".`);
  return { provider, removed: true };
}

/** Records a change of a list in its transaction. */
function recorderOf(
  { actor }: CommandContext,
  action: "locations.refreshed" | "locations.removed",
  provider: string,
): RecordList {
  return (transaction, { before, after }) =>
    recordAudit(transaction, { actor, action, subject: provider, before: valuesOf(before), after: valuesOf(after) });
}

const valuesOf = (list: StoredList | undefined) =>
  list ? { locations: list.locations, refreshedAt: list.refreshedAt } : null;

function describe({ provider, locations, refreshedAt }: StoredList) {
  const ageDays = Math.floor((Date.now() - refreshedAt.getTime()) / msPerDay);
  return { provider, locations, refreshedAt: refreshedAt.toISOString(), ageDays };
}
