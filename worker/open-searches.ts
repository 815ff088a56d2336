import type { Redis } from "ioredis";
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
  readonly #redis: Redis;
  readonly #organizations = new Map<string, { claim: SlotClaim; running: number }>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** The claim of a search that this worker begins with. Call {@link end} afterwards. */
  begin({ organizationId, openSearches }: RunningSearch): SlotClaim {
    const known = this.#organizations.get(organizationId);
    const { claim, running } = known ?? { claim: { organizationId, openSearches }, running: 0 };
    claim.openSearches = Math.max(claim.openSearches, openSearches);
    this.#organizations.set(organizationId, { claim, running: running + 1 });
    return claim;
  }

  end({ organizationId }: RunningSearch): void {
    const organization = this.#organizations.get(organizationId);
    if (organization && --organization.running === 0) this.#organizations.delete(organizationId);
  }

  /** @throws if Redis does not answer. */
  async refresh(): Promise<void> {
    const claims = [...this.#organizations.values()].map(({ claim }) => claim);
    const counts = await countOpenHolds(
      this.#redis,
      claims.map(({ organizationId }) => organizationId),
    );
    for (const [at, claim] of claims.entries()) claim.openSearches = counts[at] ?? claim.openSearches;
  }
}

/** @param google whose calls may wait. */
export function openOpenSearchCounts(context: Context, google: { callsWaiting: () => number }): OpenSearchCounts {
  const counts = new OpenSearchCounts(context.redis);
  const run = async () => {
    if (google.callsWaiting() > 0) await counts.refresh();
  };
  runPeriodically({ ...context, name: "open-searches", pauseMs: protocolTimes.slotDoublingMs, run });
  return counts;
}
