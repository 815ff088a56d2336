import { Api } from "./api-states.ts";
import { Clock, Hold, Job, type Search } from "./state.ts";
import type { Steps } from "./steps.ts";
import { offerEnd } from "./worker.ts";

/**
 * Steps that are taken at once where they can be, and nothing else beside them. That leaves out states and no behaviour:
 * such a step changes only what no other step that can still come looks at or changes, faults included, and no rule for
 * states that are not at rest looks at it either. So it may be moved in front of whatever would have come before it.
 */
export function offerEager(steps: Steps): boolean {
  for (const search of steps.now.searches) if (offerLastClock(steps, search) || offerEnd(steps, search)) return true;
  return false;
}

/**
 * Time passes over a search of which nothing is left, and nothing can come back with a restored Redis or a late message:
 * nobody asks any more how late it is.
 */
function offerLastClock(steps: Steps, { place, api, clock, hold, job, undelivered, sweep, runs }: Search): boolean {
  if (api !== Api.done || clock === Clock.fence) return false;
  if (hold !== Hold.none || job !== Job.none || undelivered === 1 || sweep !== 0) return false;
  if (runs.some(({ at }) => at !== 0) || steps.now.left.restore > 0 || steps.now.shared.lateTo === place + 1)
    return false;
  steps.take("deadline, grace and fence of % pass", place, (_, own) => {
    own.clock = Clock.fence;
  });
  return true;
}
