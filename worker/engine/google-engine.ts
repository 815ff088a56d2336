import type { Config } from "../../shared/config.ts";
import type { ErrorDetails } from "../../shared/errors.ts";
import { languageCodeOf } from "../../shared/query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../shared/query/locations.ts";
import type { Query } from "../../shared/query/query.ts";
import type { Result } from "../../shared/results.ts";
import type { Log } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { openProviderHttp } from "../../shared/providers/policies/http.ts";
import {
  fetchWithFailover,
  type FailoverRequest,
  type FailoverFailure,
} from "../../shared/providers/policies/failover.ts";
import { ProviderPolicy } from "../../shared/providers/policies/provider-policy.ts";
import { type Element, failureKinds, type Page, type Provider } from "../../shared/providers/provider.ts";
import { openProviders } from "../../shared/providers/registry.ts";
import type { Trace } from "../../shared/providers/policies/provider-attempt.ts";

export type { Trace };

export const engineErrors = ["engine_error", "engine_timeout", "query_rejected"] as const;

export type EngineAnswer =
  | { ok: true; results: Result[]; totalResultsCount: number; trace: Trace }
  | {
      ok: false;
      code: (typeof engineErrors)[number];
      details: ErrorDetails;
      trace: Trace;
      /** Whether a search with more time may do better. */
      outOfTime?: boolean;
    };

export type GoogleEngine = {
  /**
   * All results of a query, whatever its target domain. Never throws, and returns within the time that is left, give or take a few milliseconds.
   */
  search: (query: Query, remainingMs: number) => Promise<EngineAnswer>;
  close: () => Promise<void>;
};

/**
 * The engine `google`: one search is answered by one provider, the first of SERP_PROVIDERS that can honour it, is well,
 * and answers.
 * @throws {ConfigError} naming the setting that a provider lacks.
 */
export function openGoogleEngine(options: {
  config: Config;
  metrics: Metrics;
  log: Log;
  /** In place of those of SERP_PROVIDERS. */
  providers?: readonly Provider[];
}): GoogleEngine {
  const { config } = options;
  const lines = (options.providers ?? openProviders(config)).map((provider) => new ProviderPolicy(provider, options));
  const asker = openProviderHttp();
  const hedgeAfterMs = config.SERP_HEDGE_AFTER_MS;
  return {
    search: (query, remainingMs) => {
      const trace: Trace = { provider: "", calls: [], costMicroUsd: 0 };
      return search({ lines, asker, query, deadlineAt: performance.now() + remainingMs, hedgeAfterMs, trace });
    },
    close: () => asker.close(),
  };
}

async function search(errand: FailoverRequest): Promise<EngineAnswer> {
  const { query, trace } = errand;
  const able = errand.lines.filter(({ provider }) => canHonour(provider, query));
  if (able.length === 0) {
    const providers = errand.lines.map(({ provider }) => provider);
    const field = fieldNobodyCanHonour(providers, query);
    return { ok: false, code: "query_rejected", details: { reason: "unsupported", field }, trace };
  }
  // The preferred one first, but those that are busy or fail only where nobody else has answered.
  const lines = able.toSorted((one, other) => one.availability() - other.availability());
  const answer = await fetchWithFailover({ ...errand, lines });
  return "pages" in answer ? answerOf(query, answer.pages, trace) : failed(answer, trace);
}

function canHonour(provider: Provider, query: Query): boolean {
  const { mobile, city } = provider.can;
  const isPlaceAndDevice = (mobile || query.device !== "mobile") && (city || !isFinerThanCountry(query.location));
  return isPlaceAndDevice && searchesInLanguage(provider, query);
}

function searchesInLanguage({ can }: Provider, { language, location }: Query): boolean {
  return can.language?.(languageCodeOf(language), countryOf(location)) ?? true;
}

function fieldNobodyCanHonour(providers: readonly Provider[], query: Query): "device" | "location" | "language" {
  const isDevice = query.device === "mobile" && !providers.some(({ can }) => can.mobile);
  const isPlace = isFinerThanCountry(query.location) && !providers.some(({ can }) => can.city);
  const isLanguage = !providers.some((provider) => searchesInLanguage(provider, query));
  if (isLanguage && !isDevice && !isPlace) return "language";
  // Where each alone could be had and only both together cannot, giving up the device is the smaller change.
  return isPlace && !isDevice ? "location" : "device";
}

/**
 * The last failure decides, except that "not allowed on this account" only counts where nobody failed otherwise: as long
 * as one provider might answer later, the query itself is not to blame.
 */
function failed({ failures, isCutShort }: FailoverFailure, trace: Trace): EngineAnswer {
  const last = failures.findLast(({ failure }) => failure !== "query_refused");
  const said = { ok: false, trace, outOfTime: isCutShort || (last?.outOfTime ?? false) } as const;
  const reason = last && failureKinds[last.failure].reason;
  if (failures.length === 0 || reason === "timeout") return { ...said, code: "engine_timeout", details: {} };
  if (reason) return { ...said, code: "engine_error", details: { reason } };
  const field = failures.at(-1)?.field ?? "keyword";
  return { ...said, code: "query_rejected", details: { reason: failureKinds.query_refused.reason, field } };
}

/** Lines the pages up: ranks run on over all of them, each organic address counts once, and none lies deeper than asked. */
function answerOf(query: Query, pages: readonly Page[], trace: Trace): EngineAnswer {
  const results = withinDepth(pages, query.depth).map(
    ({ type, ...rest }, index): Result => ({ type, rank: index + 1, ...rest }),
  );
  return {
    ok: true,
    results,
    totalResultsCount: pages[0]?.totalResultsCount ?? 0,
    trace,
  };
}

function withinDepth(pages: readonly Page[], depth: number): Element[] {
  const urls = new Set<string>();
  let organic = 0;
  return pages
    .flatMap((page) => page.elements)
    .filter((element) => {
      if (element.type !== "organic") return true;
      if (organic === depth || urls.has(element.url)) return false;
      if (element.url !== "") urls.add(element.url);
      organic += 1;
      return true;
    });
}
