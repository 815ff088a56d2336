import type { Config } from "../../shared/config.ts";
import type { Log } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { canHonour, unsupportedField } from "../../shared/capabilities/capabilities.ts";
import type { SlotClaim } from "../providers/policies/attempt.ts";
import { type FailoverFailure, fetchWithFailover } from "../providers/policies/failover.ts";
import { openProviderHttp } from "../providers/policies/http.ts";
import { type Availability, ProviderClient } from "../providers/policies/provider-client.ts";
import { type CallRecorder, newTrace, type Trace } from "../providers/policies/trace.ts";
import { failureKinds, type Page, type Provider } from "../providers/provider.ts";
import { openProviders } from "../providers/registry.ts";
import { isFinerThanCountry } from "../../shared/query/locations.ts";
import type { Query } from "../../shared/query/query.ts";
import type { EngineAnswer } from "./engine-answer.ts";
import type { ListedLocations } from "./listed-locations.ts";
import { type Locate, openLocate } from "./locate.ts";
import { mergePages, searchedKeywordOf } from "./merge-pages.ts";
import { countFitting } from "../../shared/fitting-results.ts";
import { charactersOf } from "../providers/build-element.ts";
import type { Result } from "../../shared/results.ts";
import { answerBytesMax } from "../../shared/search-answer.ts";

/** For the fields of an answer beside its results: the query has at most 2,000 characters of up to four bytes. */
const otherBytes = 16 * 1024;
const resultsBytesMax = answerBytesMax - otherBytes;
/** In UTF-8, escaped where JSON has to. */
const characterBytesMax = 3;

export type GoogleEngine = {
  /**
   * All results of a query, whatever its target domain. Never throws. Returns within `remainingMs`, give or take a few
   * milliseconds.
   * @param options.disconnected aborted when no caller waits any more: no further call is sent, and those that were sent end normally.
   * @param options.recorder gets every call with its raw answer. @param options.claim decides when its calls get a slot.
   */
  search: (query: Query, remainingMs: number, options?: SearchOptions) => Promise<EngineAnswer>;
  /** Calls that wait for a slot at a provider. While there are any, more searches at once would only wait longer. */
  callsWaiting: () => number;
  /** Calls that may run at once at all providers whose circuit is not open. */
  callsMax: () => number;
  close: () => Promise<void>;
};

type SearchOptions = {
  disconnected?: AbortSignal | undefined;
  recorder?: CallRecorder | undefined;
  claim?: SlotClaim | undefined;
};

type Search = SearchOptions & {
  query: Query;
  deadlineAtMs: number;
  hedgeAfterMs: number;
  locate: Locate;
};

/**
 * Opens the engine `google`. One provider answers a search: of the providers in SERP_PROVIDERS that can honour the query,
 * the first one that is available and succeeds.
 * @param options.providers replaces the providers of SERP_PROVIDERS.
 * @param options.locations the providers' lists of locations. Without it, cities and regions are sent as they are.
 * @throws {ConfigError} naming the setting that a provider lacks.
 */
export function openGoogleEngine(options: {
  config: Config;
  metrics: Metrics;
  log: Log;
  providers?: readonly Provider[];
  locations?: Pick<ListedLocations, "find">;
}): GoogleEngine {
  const { config, metrics, log, locations } = options;
  const locate = openLocate(locations, log);
  const http = openProviderHttp();
  const providers = options.providers ?? openProviders(config);
  const clients = providers.map((provider) => new ProviderClient(provider, { http, metrics, log }));
  const hedgeAfterMs = config.SERP_HEDGE_AFTER_MS;
  return {
    search: async (query, remainingMs, asked) => {
      const deadlineAtMs = performance.now() + remainingMs;
      const answer = await search(clients, { query, deadlineAtMs, hedgeAfterMs, locate, ...asked });
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
  const field = unsupportedField(
    clients.map(({ provider }) => provider.can),
    query,
  );
  if (field) return { ok: false, code: "query_rejected", details: { reason: "unsupported", field }, trace };
  const eligible = clients.filter(({ provider }) => canHonour(provider.can, query));
  // A country is the same for every provider.
  const located = isFinerThanCountry(query.location)
    ? await locate(eligible, query, limits.deadlineAtMs)
    : { eligible };
  if ("code" in located) return { ok: false, ...located, trace };
  const providers = byAvailability(located.eligible);
  const answer = await fetchWithFailover({ providers, listedLocations: located.names, query, ...limits, trace });
  return "pages" in answer ? toAnswer(query, answer.pages, trace) : toError(answer, trace);
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
