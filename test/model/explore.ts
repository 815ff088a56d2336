import { brokenIn, restIsReachable } from "./invariants.ts";
import { KnownStates } from "./known-states.ts";
import { emptyState, firstState, offerAll } from "./model.ts";
import type { State } from "./state.ts";
import { Steps, type OfferedStep, type ModelConfig } from "./steps.ts";

export interface Violation {
  rule: string;
  /** The steps that lead there. */
  trace: string[];
}

export interface Explored {
  states: number;
  /** Steps to the most distant state. */
  depth: number;
  /** States in which nothing is left to do. */
  resting: number;
  seconds: number;
  /** False if the bound on states was reached. */
  isExhaustive: boolean;
  /** Whether it was also checked that every state can come to rest. */
  isRestAsked: boolean;
  /** One for each broken rule, with a shortest trace. */
  violations: Violation[];
}

/**
 * Visits every state that a model can reach, breadth first, so that the trace to a violation is a shortest one.
 * @param options.statesMax the bound on states; further states are not visited.
 * @param options.restAskedMax the bound on states for the check whether each can come to rest, which visits all several times.
 * @param options.until a rule at whose first violation to stop.
 */
export function explore(
  config: ModelConfig,
  options: { statesMax: number; restAskedMax: number; until?: string },
): Explored {
  const startedAtMs = performance.now();
  const [now, next] = [emptyState(config), emptyState(config)];
  const known = new KnownStates(now.words.length);
  const traces = new Map<string, string[]>();
  let at = 0;
  let isExhaustive = true;

  const see = (state: State, number: number, isAtRest: boolean) => {
    for (const rule of brokenIn(state, config, isAtRest))
      if (!traces.has(rule)) traces.set(rule, traceTo(config, known, number));
  };
  const take = ({ name, found, index, broken }: OfferedStep) => {
    if (broken !== "" && !traces.has(broken))
      traces.set(broken, [...traceTo(config, known, at), describeStep(config, name, index, found)]);
    if (known.count >= options.statesMax) {
      isExhaustive &&= known.find(next.words) >= 0;
      return;
    }
    const number = known.add(next.words, at);
    if (number >= 0) see(next, number, false);
  };

  const first = firstState(config);
  known.add(first.words, -1);
  see(first, 0, false);
  let resting = 0;
  let depth = 0;
  let layerEnd = 1;
  for (; at < known.count; at += 1) {
    if (at === layerEnd) {
      depth += 1;
      layerEnd = known.count;
    }
    if (options.until !== undefined && traces.has(options.until)) {
      isExhaustive = false;
      break;
    }
    known.read(at, now.words);
    const steps = new Steps(config, now, next, take);
    offerAll(steps);
    if (steps.progress > 0) continue;
    resting += 1;
    see(now, at, true);
  }

  const isRestAsked = isExhaustive && known.count <= options.restAskedMax;
  const stuck = isRestAsked ? findStuck(config, known) : -1;
  if (stuck >= 0) traces.set(restIsReachable, traceTo(config, known, stuck));
  const violations = [...traces].map(([rule, trace]) => ({ rule, trace }));
  const seconds = (performance.now() - startedAtMs) / 1_000;
  return { states: known.count, depth, resting, seconds, isExhaustive, isRestAsked, violations };
}

/** Follows the parents back to the first state, and finds the step between each two. */
function traceTo(config: ModelConfig, known: KnownStates, number: number): string[] {
  const way = [];
  for (let at = number; at > 0; at = known.parentOf(at)) way.push(at);
  const [now, next, goal] = [emptyState(config), emptyState(config), emptyState(config)];
  return way.toReversed().map((at) => {
    known.read(known.parentOf(at), now.words);
    known.read(at, goal.words);
    let description = "";
    const offered = ({ name, index, found }: OfferedStep) => {
      if (description === "" && goal.words.every((word, word_) => word === next.words[word_]))
        description = describeStep(config, name, index, found);
    };
    offerAll(new Steps(config, now, next, offered));
    return description;
  });
}

const names = ["A", "B", "C", "D"];

function describeStep(config: ModelConfig, name: string, index: number, found: string): string {
  const search = `${names[index] ?? ""}${config.keyed[index] ? " (keyed)" : ""}`;
  return name.replace("%", search) + (found === "" ? "" : `: ${found}`);
}

/**
 * Finds a state from which no path without a fault leads to rest, or -1. Each pass goes backwards, because most successors of a
 * state come after it; passes repeat until one finds nothing new.
 */
function findStuck(config: ModelConfig, known: KnownStates): number {
  const [now, next] = [emptyState(config), emptyState(config)];
  const rests = new Uint8Array(known.count);
  let open = known.count;
  for (let before = Number.POSITIVE_INFINITY; open < before; ) {
    before = open;
    for (let at = known.count - 1; at >= 0; at -= 1) {
      if (rests[at] === 1) continue;
      known.read(at, now.words);
      let isFound = false;
      const offered = ({ isFault }: OfferedStep) => {
        if (!isFault && !isFound) isFound = rests[known.find(next.words)] === 1;
      };
      const steps = new Steps(config, now, next, offered);
      offerAll(steps);
      if (!isFound && steps.progress > 0) continue;
      rests[at] = 1;
      open -= 1;
    }
    if (open === 0) return -1;
  }
  return rests.indexOf(0);
}
