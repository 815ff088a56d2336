import type { Context } from "../../shared/process/context.ts";
import { canHonour, unsupportedField } from "../../shared/capabilities/capabilities.ts";
import { withTimeout } from "../../shared/concurrency/wait-for.ts";
import type { ErrorDetails } from "../../shared/errors.ts";
import { truncate } from "../../shared/errors/truncate.ts";
import { type Log, throttledWarning } from "../../shared/log.ts";
import { isFinerThanCountry, knownPart, placesMeant } from "../../shared/query/locations.ts";
import { keywordCharactersMax, type Query } from "../../shared/query/query.ts";
import { pageKey, type Result } from "../../shared/results.ts";
import { answerBytesMax, countFitting } from "../../shared/search-answer.ts";
import type { FoundLocation } from "../locations/find-location.ts";
import type { ListedLocations } from "../locations/listed-locations.ts";
import { charactersOf } from "../providers/build-element.ts";
import { type CallOptions, newTrace, type Trace } from "../providers/policies/attempt.ts";
import { type FailoverFailure, fetchWithFailover } from "../providers/policies/failover.ts";
import { openProviderHttp } from "../providers/policies/http.ts";
import { type Availability, ProviderClient } from "../providers/policies/provider-client.ts";
import { type Element, failureKinds, type Page, type Provider } from "../providers/provider.ts";
import { openProviders } from "../providers/registry.ts";
import { plainText } from "../providers/sanitize.ts";

/** For the fields of an answer beside its results: the query has at most 2,000 characters of up to four bytes. */
const otherBytes = 16 * 1024;
const resultsBytesMax = answerBytesMax - otherBytes;
/** In UTF-8, escaped where JSON has to. */
const characterBytesMax = 3;
// No results page has so many elements: a provider that states a higher rank counts something else.
const providerRankMax = 10_000;

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

export type GoogleEngine = {
  /** All results of a query, whatever its target domain. Never throws. Returns within `remainingMs`, give or take a few ms. */
  search: (query: Query, remainingMs: number, options?: CallOptions) => Promise<EngineAnswer>;
  /** Calls that wait for a slot at a provider. While there are any, more searches at once would only wait longer. */
  callsWaiting: () => number;
  /** Calls that may run at once at all providers whose circuit is not open. */
  callsMax: () => number;
  close: () => Promise<void>;
};

type Search = CallOptions & { query: Query; deadlineAtMs: number; hedgeAfterMs: number; locate: Locate };

/**
 * Opens the engine `google`. One provider answers a search: of the providers in SERP_PROVIDERS that can honour the query,
 * the first one that is available and succeeds.
 * @param options.providers replaces the providers of SERP_PROVIDERS.
 * @param options.locations the providers' lists of locations. Without it, cities and regions are sent as they are.
 * @throws {ConfigError} naming the setting that a provider lacks.
 */
export function openGoogleEngine(
  options: Pick<Context, "config" | "metrics" | "log"> & {
    providers?: readonly Provider[];
    locations?: Pick<ListedLocations, "find">;
  },
): GoogleEngine {
  const { config, metrics, log, locations } = options;
  const locate = openLocate(locations, log);
  const providers = options.providers ?? openProviders(config);
  const http = openProviderHttp({ providers: providers.length });
  const clients = providers.map((provider) => new ProviderClient(provider, { http, metrics, log }));
  const hedgeAfterMs = config.SERP_HEDGE_AFTER_MS;
  return {
    search: async (query, remainingMs, callOptions) => {
      const deadlineAtMs = performance.now() + remainingMs;
      const answer = await search(clients, { query, deadlineAtMs, hedgeAfterMs, locate, ...callOptions });
      if (answer.ok && answer.truncated) metrics.truncatedAnswers.inc({ provider: answer.trace.provider });
      return answer;
    },
    callsWaiting: () => clients.reduce((sum, client) => sum + client.callsWaiting, 0),
    callsMax: () => clients.reduce((sum, client) => sum + client.callsMax, 0),
    close: () => http.close(),
  };
}

async function search(clients: readonly ProviderClient[], { query, locate, ...limits }: Search): Promise<EngineAnswer> {
  const trace = newTrace(limits.recorder);
  const capabilities = clients.map(({ provider }) => provider.can);
  const field = unsupportedField(capabilities, query);
  if (field) return { ok: false, code: "query_rejected", details: { reason: "unsupported", field }, trace };
  const eligible = clients.filter(({ provider }) => canHonour(provider.can, query));
  // A country is the same for every provider.
  const located = isFinerThanCountry(query.location)
    ? await locate(eligible, query.location, limits.deadlineAtMs)
    : { eligible };
  if ("code" in located) return { ok: false, ...located, trace };
  const providers = byAvailability(located.eligible);
  const answer = await fetchWithFailover({ providers, listedLocations: located.names, query, ...limits, trace });
  return "pages" in answer ? toAnswer(query, answer.pages, trace) : toError(answer, trace);
}

/** The providers that can search from a location, and the name that each of them gets for it. */
type Located = { eligible: readonly ProviderClient[]; names?: ReadonlyMap<string, string> };
type Refused = Pick<Extract<EngineAnswer, { ok: false }>, "code" | "details">;

/** Finds a city or region in the providers' lists. Never throws. */
type Locate = (
  eligible: readonly ProviderClient[],
  location: string,
  deadlineAtMs: number,
) => Promise<Located | Refused>;

function openLocate(locations: Pick<ListedLocations, "find"> | undefined, log: Log): Locate {
  const warn = throttledWarning(log, "a location was not looked up in the providers' lists");
  return async (eligible, location, deadlineAtMs) => {
    try {
      const found = await withTimeout(deadlineAtMs - performance.now(), Promise.resolve(locations?.find(location)));
      if (found === undefined) return refusalOfUnknown(location) ?? { eligible };
      if (found.isAmbiguous) return refusal("location_ambiguous", found.candidates);
      const { names, candidates = [] } = found;
      const located = withNames(eligible, found);
      if (located === undefined) return refusal("location_unknown", candidates);
      return names.size > 0 ? located : (refusalOfUnknown(location, candidates) ?? located);
    } catch (error) {
      // Sent as it is, the provider could guess between two places, and the search would be charged.
      warn(error);
      return { code: "engine_error", details: { reason: "provider_unavailable" } };
    }
  };
}

/**
 * Refuses a place that is probably none, because providers search from the country if they do not know a place, and charge for it.
 * No list of small places is complete, so one in a known area is sent unless its name is that of a city there with a typo.
 * @param listed the places of the same or a similar name in the providers' lists, all of which lack this one.
 */
function refusalOfUnknown(location: string, listed: readonly string[] = []): Refused | undefined {
  const known = knownPart(location);
  if (known === "place") return undefined;
  const candidates = listed.length > 0 ? listed : placesMeant(location, known);
  return known === "area" && candidates.length === 0 ? undefined : refusal("location_unknown", candidates);
}

function refusal(reason: "location_ambiguous" | "location_unknown", candidates: readonly string[]): Refused {
  return { code: "query_rejected", details: { reason, field: "location", candidates } };
}

/**
 * All lists are parts of Google's, so a provider without a list of its own gets the name from another list, or the location as
 * it is. A provider whose list lacks it is not called.
 */
function withNames(
  eligible: readonly ProviderClient[],
  { names, lackedBy }: Extract<FoundLocation, { isAmbiguous: false }>,
): Located | undefined {
  const able = eligible.filter(({ provider }) => !lackedBy.has(provider.name));
  if (able.length === 0) return undefined;
  const [other] = names.values();
  const named = able.flatMap(({ provider: { name } }) => {
    const listed = names.get(name) ?? other;
    return listed === undefined ? [] : [[name, listed] as const];
  });
  return { eligible: able, names: new Map(named) };
}

const tryOrder: Record<Availability, number> = { ready: 0, saturated: 1, open: 2 };

/** In order of preference, except that saturated providers and open circuits are tried only after the others. */
function byAvailability(clients: readonly ProviderClient[]): ProviderClient[] {
  return clients.toSorted((one, other) => tryOrder[one.availability()] - tryOrder[other.availability()]);
}

/**
 * The last failure decides. But "our account does not allow this query" counts only if no provider failed in another way:
 * as long as one of them might answer later, the query is not at fault.
 */
function toError({ failures, isCutShort }: FailoverFailure, trace: Trace): EngineAnswer {
  const last = failures.findLast(({ failure }) => failure !== "query_refused");
  const error = { ok: false, trace, outOfTime: isCutShort || (last?.outOfTime ?? false) } as const;
  const reason = last && failureKinds[last.failure].reason;
  if (failures.length === 0 || reason === "timeout") return { ...error, code: "engine_timeout", details: {} };
  if (reason) return { ...error, code: "engine_error", details: { reason } };
  const field = failures.at(-1)?.field ?? "keyword";
  return { ...error, code: "query_rejected", details: { reason: failureKinds.query_refused.reason, field } };
}

function toAnswer(query: Query, pages: readonly Page[], trace: Trace): EngineAnswer {
  const { results, truncated: isCut } = boundResults(mergePages(pages, query.depth));
  const truncated = isCut || pages.some((page) => page.truncated);
  const searchedKeyword = searchedKeywordOf(pages, query.keyword);
  return {
    ok: true,
    results,
    totalResultsCount: pages[0]?.totalResultsCount ?? 0,
    trace,
    ...(searchedKeyword !== undefined && { searchedKeyword }),
    ...(truncated && { truncated }),
  };
}

/** The first results, as many as fit into an answer. The last ones are dropped, so that the others keep their ranks. */
export function boundResults(results: readonly Result[]): { results: readonly Result[]; truncated: boolean } {
  const characters = results.reduce((sum, result) => sum + charactersOf(result), 0);
  // For nearly all answers, counting is enough.
  if (characters * characterBytesMax <= resultsBytesMax) return { results, truncated: false };
  const fitting = countFitting(results, resultsBytesMax);
  return { results: results.slice(0, fitting), truncated: fitting < results.length };
}

/** The ranked results of all pages of one provider. */
export function mergePages(pages: readonly Page[], depth: number): Result[] {
  const elements = elementsOf(pages, depth);
  const ranks = ranksOf(elements);
  return elements.map((element, index) => {
    // Named one by one: with a rest and a spread, merging takes ten times as long.
    const { type, title, url, domain, breadcrumb, description, richSnippet, siteLinks } = element;
    const rank = ranks?.[index] ?? index + 1;
    return { type, rank, title, url, domain, breadcrumb, description, richSnippet, siteLinks };
  });
}

/** All elements in page order. Of organic ones, each page of the web only once, and no more than the depth. */
function elementsOf(pages: readonly Page[], depth: number): Element[] {
  const keys = new Set<string>();
  let organic = 0;
  return pages
    .flatMap((page) => page.elements)
    .filter((element) => {
      if (element.type !== "organic") return true;
      const key = pageKey(element.url);
      if (organic === depth || keys.has(key)) return false;
      if (key !== "") keys.add(key);
      organic += 1;
      return true;
    });
}

/**
 * The ranks that the provider states. An element without one, or with that of the element before it, comes right after that
 * element; those behind it move on until there is a gap. Undefined if the stated ranks fall, as where a provider counts each
 * page from 1.
 */
function ranksOf(elements: readonly Element[]): number[] | undefined {
  const ranks: number[] = [];
  let previous = 0;
  let previousStated = 1;
  for (const { providerRank = previousStated } of elements) {
    const isSound = Number.isInteger(providerRank) && providerRank <= providerRankMax;
    if (!isSound || providerRank < previousStated) return undefined;
    previous = Math.max(providerRank, previous + 1);
    ranks.push(previous);
    previousStated = providerRank;
  }
  return ranks;
}

/** What the engine searched instead of the keyword. Undefined if it searched the keyword itself. */
export function searchedKeywordOf(pages: readonly Page[], keyword: string): string | undefined {
  const searched = pages.find((page) => page.searchedKeyword !== undefined)?.searchedKeyword?.trim();
  // Adapters sanitize the provider's texts, which is no correction of the spelling.
  if (!searched || searched === keyword || searched === plainText(keyword)) return undefined;
  return truncate(searched, keywordCharactersMax);
}
