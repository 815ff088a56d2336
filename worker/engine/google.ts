import type { Config } from "../../shared/config.ts";
import { isWithin } from "../../shared/domains.ts";
import type { ErrorDetails } from "../../shared/errors.ts";
import { languageCodeOf } from "../../shared/languages.ts";
import { countryOf, isFinerThanCountry } from "../../shared/places.ts";
import type { Query } from "../../shared/query.ts";
import type { Result } from "../../shared/results.ts";
import { type Asker, openAsker } from "./ask.ts";
import { type Element, type Failure, failureKinds, type Page, type Provider } from "./provider.ts";
import { openProviders } from "./registry.ts";
import { fetchPages, roomMsMin, type Trace } from "./visit.ts";

export type { Trace };

export type EngineAnswer =
  | { ok: true; results: Result[]; totalResultsCount: number; trace: Trace }
  | {
      ok: false;
      code: "engine_error" | "engine_timeout" | "query_rejected";
      details: ErrorDetails;
      trace: Trace;
    };

export type Google = {
  /** Never throws, and returns within the time that is left, give or take a few milliseconds. */
  search: (query: Query, remainingMs: number) => Promise<EngineAnswer>;
  close: () => Promise<void>;
};

/**
 * The engine `google`: one search is answered by one provider, the first of SERP_PROVIDERS that can honour it and does.
 * @throws {ConfigError} naming the setting that a provider lacks.
 */
export function createGoogle(config: Config, options: { providers?: Provider[] } = {}): Google {
  const providers = options.providers ?? openProviders(config);
  const asker = openAsker();
  return {
    search: (query, remainingMs) => search({ providers, asker, query, deadlineAt: performance.now() + remainingMs }),
    close: () => asker.close(),
  };
}

type Search = { providers: Provider[]; asker: Asker; query: Query; deadlineAt: number };

async function search({ providers, asker, query, deadlineAt }: Search): Promise<EngineAnswer> {
  const trace: Trace = { provider: "", calls: [], costMicroUsd: 0 };
  const able = providers.filter((provider) => canHonour(provider, query));
  if (able.length === 0) {
    const field = fieldNobodyCanHonour(providers, query);
    return { ok: false, code: "query_rejected", details: { reason: "unsupported", field }, trace };
  }
  const failures: Failure[] = [];
  for (const provider of able) {
    const hasRoom = deadlineAt - performance.now() >= (failures.length === 0 ? 0 : roomMsMin);
    if (!hasRoom) break;
    trace.provider = provider.name;
    const pages = await fetchPages({ provider, asker, query, deadlineAt, trace });
    if (!("failure" in pages)) return answerOf(query, pages, trace);
    failures.push(pages);
  }
  return failed(failures, trace);
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
function failed(failures: readonly Failure[], trace: Trace): EngineAnswer {
  const last = failures.findLast(({ failure }) => failure !== "query_refused")?.failure;
  if (failures.length === 0 || last === "timeout") return { ok: false, code: "engine_timeout", details: {}, trace };
  if (last === undefined) {
    const details = { reason: failureKinds.query_refused.reason, field: failures.at(-1)?.field ?? "keyword" };
    return { ok: false, code: "query_rejected", details, trace };
  }
  return { ok: false, code: "engine_error", details: { reason: failureKinds[last].reason }, trace };
}

/** Lines the pages up: ranks run on over all of them, each organic address counts once, and none lies deeper than asked. */
function answerOf(query: Query, pages: readonly Page[], trace: Trace): EngineAnswer {
  const results = withinDepth(pages, query.depth).map(
    ({ type, ...rest }, index): Result => ({ type, rank: index + 1, ...rest }),
  );
  const { targetDomain } = query;
  return {
    ok: true,
    results: targetDomain === undefined ? results : results.filter(({ domain }) => isWithin(domain, targetDomain)),
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
