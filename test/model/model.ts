import { offerApi } from "./api.ts";
import { offerForgetting, offerGate, offerSending } from "./api-gate.ts";
import { offerFirstRound, offerReconciler, offerRotation, offerSweeper } from "./maintenance.ts";
import { offerEager } from "./eager.ts";
import { offerFaults, offerFaultsOf, offerTime } from "./faults.ts";
import { offerLateArrival } from "./redis.ts";
import { type Fault, State } from "./state.ts";
import type { Steps, ModelConfig } from "./steps.ts";
import { offerWorkers } from "./worker.ts";

/** Every step that can come next. */
export function offerAll(steps: Steps): void {
  if (offerEager(steps)) return;
  for (const search of steps.now.searches) {
    offerGate(steps, search);
    offerApi(steps, search);
    offerWorkers(steps, search);
    offerSweeper(steps, search);
    offerReconciler(steps, search);
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

/** A state of this model; all zero. */
export function emptyState({ keyed, takeOversMax }: ModelConfig): State {
  // One run, one more for each take-over, and one that ends a job that failed.
  return new State(keyed.length, takeOversMax + 2);
}

/** An organization with its balance, before any search is sent. */
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
