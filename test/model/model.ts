import { offerApi } from "./api.ts";
import { Api } from "./api-states.ts";
import { offerForgetting, offerGate, offerSending } from "./api-gate.ts";
import { offerKeyedCancel } from "./keyed-cancel.ts";
import { offerFirstRound, offerReconciler, offerRotation, offerSweeper } from "./maintenance.ts";
import { offerFaults, offerFaultsOf, offerTime } from "./faults.ts";
import { offerLateArrival } from "./redis.ts";
import { Clock, type Fault, Hold, Job, type Search, State } from "./state.ts";
import type { Steps, ModelConfig } from "./steps.ts";
import { offerEnd, offerWorkers } from "./worker.ts";

/** Every step that can come next. */
export function offerAll(steps: Steps): void {
  if (offerEager(steps)) return;
  for (const search of steps.now.searches) {
    offerGate(steps, search);
    offerApi(steps, search);
    offerWorkers(steps, search);
    offerSweeper(steps, search);
    offerReconciler(steps, search);
    offerKeyedCancel(steps, search);
    if (!steps.config.isPunctual) offerTime(steps, search);
  }
  offerSending(steps);
  offerForgetting(steps);
  offerLateArrival(steps);
  offerFirstRound(steps);
  if (steps.progress === 0) for (const search of steps.now.searches) offerTime(steps, search);
  if (steps.progress === 0) offerRotation(steps);

  for (const search of steps.now.searches) offerFaultsOf(steps, search);
  offerFaults(steps);
}

/**
 * Offers an eager step, which is taken before any other. That skips states and no behaviour: it changes only what no other
 * possible step, fault or rule before rest reads or changes. So it may be moved before any step that would have come first.
 * @returns whether there was one.
 */
function offerEager(steps: Steps): boolean {
  for (const search of steps.now.searches) if (offerLastClock(steps, search) || offerEnd(steps, search)) return true;
  return false;
}

/** Time passes for a search that left nothing behind and cannot come back, because its clock is no longer read. */
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

/** A state of this model in which every field is 0. */
export function emptyState({ keyed, takeOversMax }: ModelConfig): State {
  // One run, one more for each take-over, and one that ends a job that failed.
  return new State(keyed.length, takeOversMax + 2);
}

/** The state before any search is sent. */
export function firstState(config: ModelConfig): State {
  const state = emptyState(config);
  const { shared } = state;
  shared.balance = shared.granted = config.balance;
  shared.version = 1;
  if (config.warm) {
    shared.copy = config.balance + 1;
    shared.copyVersion = 1;
    shared.copySpent = config.limit === undefined ? 0 : 1;
  }
  for (const [fault, times] of Object.entries(config.faults)) {
    // The keys of a record of faults are faults; Object.entries does not say so.
    state.left[fault as Fault] = times;
  }
  state.left.snapshot = state.left.restore;
  return state;
}
