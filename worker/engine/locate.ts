import { withTimeout } from "../../shared/concurrency/with-timeout.ts";
import { type Log, throttledWarning } from "../../shared/log.ts";
import type { ProviderClient } from "../providers/policies/provider-client.ts";
import { isKnown, placesNamed } from "../../shared/query/locations.ts";
import type { Query } from "../../shared/query/query.ts";
import type { FoundLocation } from "../locations/find-location.ts";
import type { EngineAnswer } from "./engine-answer.ts";
import type { ListedLocations } from "./listed-locations.ts";

/** The providers that can search from a location, and the name that each of them gets for it. */
type Located = { eligible: readonly ProviderClient[]; names?: ReadonlyMap<string, string> };
type Refused = Pick<Extract<EngineAnswer, { ok: false }>, "code" | "details">;

/** Finds the city or region of a query in the providers' lists. Never throws. */
export type Locate = (
  eligible: readonly ProviderClient[],
  query: Query,
  deadlineAtMs: number,
) => Promise<Located | Refused>;

/** @param locations the stored lists; without them, every provider gets a location that is known, as it is. */
export function openLocate(locations: Pick<ListedLocations, "find"> | undefined, log: Log): Locate {
  const warn = throttledWarning(log, "a location was not looked up in the providers' lists");
  return async (eligible, { location }, deadlineAtMs) => {
    try {
      const found = await withTimeout(deadlineAtMs - performance.now(), Promise.resolve(locations?.find(location)));
      if (found === undefined) return isKnown(location) ? { eligible } : unknown(location);
      if (found.isAmbiguous) return refusal("location_ambiguous", found.candidates);
      return withNames(eligible, found) ?? refusal("location_unknown", found.candidates ?? []);
    } catch (error) {
      // Sent as it is, the provider could guess between two places, and the search would be charged.
      warn(error);
      return { code: "engine_error", details: { reason: "provider_unavailable" } };
    }
  };
}

/** Providers search from the country if they do not know a place, and charge. */
function unknown(location: string): Refused {
  const [place = ""] = location.split(",");
  const elsewhere = placesNamed(place).map((candidate) => candidate.replaceAll(", ", ","));
  return refusal("location_unknown", elsewhere);
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
  const nameFor = ({ provider: { name } }: ProviderClient) => names.get(name) ?? other;
  const named = able.flatMap((client) => {
    const listed = nameFor(client);
    return listed === undefined ? [] : [[client.provider.name, listed] as const];
  });
  return { eligible: able, names: new Map(named) };
}
