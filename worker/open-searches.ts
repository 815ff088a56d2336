import type { Redis } from "ioredis";
import { InFlightEntries } from "../shared/concurrency/in-flight-entries.ts";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import { countOpenHolds } from "../shared/credits/open-holds.ts";
import type { Context } from "../shared/process/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import type { SearchJob } from "../shared/queue/search-job.ts";
import type { SlotClaim } from "./providers/policies/attempt.ts";

type RunningSearch = Pick<SearchJob, "organizationId" | "openSearches">;

/**
 * How many searches the organizations have open of which this worker runs searches. All running searches of an organization have
 * one claim. A job says how many there were when it was admitted, and the first of many has none beside it: so while calls wait
 * for a slot, the numbers are read anew.
 */
export class OpenSearchCounts {
  readonly #organizations = new InFlightEntries<{ claim: SlotClaim; running: number }>();

  /** The claim of a search that this worker begins with. Call {@link end} afterwards. */
  begin({ organizationId, openSearches }: RunningSearch): SlotClaim {
    const organization = this.#organizations.get(organizationId) ?? {
      claim: { organizationId, openSearches },
      running: 0,
    };
    const { claim } = organization;
    claim.openSearches = Math.max(claim.openSearches, openSearches);
    organization.running += 1;
    this.#organizations.set(organizationId, organization);
    return claim;
  }

  end({ organizationId }: RunningSearch): void {
    const organization = this.#organizations.get(organizationId);
    if (organization && --organization.running === 0) this.#organizations.delete(organizationId);
  }

  /** Reads the numbers anew, in one round trip. @throws if Redis does not answer. */
  async refresh(redis: Redis): Promise<void> {
    const claims = this.#organizations.values().map(({ claim }) => claim);
    const ids = claims.map(({ organizationId }) => organizationId);
    const counts = await countOpenHolds(redis, ids);
    for (const [at, claim] of claims.entries()) claim.openSearches = counts[at] ?? claim.openSearches;
  }
}

/** @param google whose calls may wait. */
export function watchOpenSearches(
  context: Pick<Context, "redis" | "log" | "metrics" | "shutdown">,
  google: { callsWaiting: () => number },
): OpenSearchCounts {
  const counts = new OpenSearchCounts();
  const run = async () => {
    if (google.callsWaiting() > 0) await counts.refresh(context.redis);
  };
  // With the slots, which are decided as often.
  runPeriodically({ ...context, name: "open-searches", pauseMs: protocolTimes.slotDoublingMs, run });
  return counts;
}
