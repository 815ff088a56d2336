import { Api } from "./api-states.ts";
import { Clock, Hold, Job, type Search } from "./state.ts";
import type { Steps } from "./steps.ts";
import { offerEnd } from "./worker.ts";

/**
 * Steps that are taken at once where they are possible, before any other. That leaves out states and no behaviour: such a
 * step changes only what no other possible step reads or changes, faults included, and what no rule for states that are not
 * at rest reads. So it may be moved before any step that would have come first.
 */
export function offerEager(steps: Steps): boolean {
  for (const search of steps.now.searches) if (offerLastClock(steps, search) || offerEnd(steps, search)) return true;
  return false;
}

/**
 * Time passes for a search once nothing of it is left, and no restored Redis or late message can bring it back: its clock
 * is not read any more.
 */
function offerLastClock(steps: Steps, { index, api, clock, hold, job, undelivered, sweep, runs }: Search): boolean {
  if (api !== Api.done || clock === Clock.fence) return false;
  if (hold !== Hold.none || job !== Job.none || undelivered === 1 || sweep !== 0) return false;
  if (runs.some(({ at }) => at !== 0) || steps.now.left.restore > 0 || steps.now.shared.lateTo === index + 1)
    return false;
  steps.offer("deadline, grace and fence of % pass", index, (_, own) => {
    own.clock = Clock.fence;
  });
  return true;
}
