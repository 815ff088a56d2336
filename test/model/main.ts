import { Command } from "commander";
import { parseWholeNumber } from "../../shared/admin/argument-parsers.ts";
import { type DesignBug, bugs } from "./bugs.ts";
import { asBuilt } from "./design.ts";
import { explore, type Violation } from "./explore.ts";
import { type Scenario, scenarios } from "./scenarios.ts";
import { restIsReachable } from "./invariants.ts";

/** `npm run model`: goes through every scenario, then shows that each planted bug is found. Exit 1 where either fails. */

const statesMaxByDefault = 12_000_000;
const restAskedMax = 150_000;

interface Options {
  list?: boolean;
  scenario?: string;
  bug?: string;
  thorough?: boolean;
  states: number;
}

const say = (text: string) => process.stdout.write(`${text}\n`);

const program = new Command("npm run model --")
  .description(
    "Goes through every state that the money can get into, within the bounds of each scenario, and checks the invariants.",
  )
  .option("--list", "names scenarios and planted bugs")
  .option("--scenario <name>", "this scenario alone")
  .option("--bug <name>", "this planted bug alone")
  .option("--thorough", "the long scenarios, too")
  .option("--states <n>", "states that a scenario may have", parseWholeNumber(1), statesMaxByDefault)
  .action(run);

program.parse();

function run({ list, scenario, bug, thorough, states }: Options): void {
  if (list) {
    for (const { name, isLong } of scenarios) say(`scenario  ${name}${isLong ? "  (long)" : ""}`);
    for (const { name } of bugs) say(`bug       ${name}`);
    return;
  }
  const all = scenario === undefined && bug === undefined;
  const chosen = scenarios.filter(({ name, isLong }) => (all ? thorough || !isLong : name === scenario));
  const planted = bugs.filter(({ name }) => all || name === bug);
  if (chosen.length + planted.length === 0)
    return program.error("There is no such scenario or bug; --list names them.");

  const sane = chosen.map((one) => goThrough(one, states)).every(Boolean);
  const caught = planted.map((one) => find(one, states)).every(Boolean);
  if (sane && caught) return;
  say(sane ? "A planted bug was not found." : "A rule is broken.");
  process.exitCode = 1;
}

/** @returns whether no rule is broken. */
function goThrough(scenario: Scenario, statesMax: number): boolean {
  const { keyed, balance, warm, takeOversMax, name } = scenario;
  const told = Object.entries(scenario.faults).map(([fault, times]) => `${fault} ${times}`);
  const found = explore(
    { keyed, balance, warm, takeOversMax, faults: scenario.faults, design: asBuilt },
    { statesMax, restAskedMax },
  );
  say(
    `${name}: ${keyed.map((isKeyed) => (isKeyed ? "keyed" : "unkeyed")).join(", ")}; ${told.join(", ") || "no fault"}`,
  );
  const states = `${found.states.toLocaleString("en")} states, ${found.resting} at rest, depth ${found.depth}`;
  const bounds = found.isExhaustive ? "exhaustive" : "NOT exhaustive, the bound on states came first";
  const rest = found.isRestAsked ? `, ${restIsReachable}` : "";
  say(`  ${states}, ${found.seconds.toFixed(1)} s, ${bounds}${found.violations.length > 0 ? "" : rest}`);
  for (const violation of found.violations) show(violation);
  return found.violations.length === 0;
}

/** @returns whether the planted bug was found by the rule that it breaks. */
function find({ name, rule, config }: DesignBug, statesMax: number): boolean {
  const { violations, states, seconds } = explore(config, { statesMax, restAskedMax, until: rule });
  const violation = violations.find((one) => one.rule === rule);
  const told = `${states.toLocaleString("en")} states, ${seconds.toFixed(1)} s`;
  say(`planted: ${name}: ${violation ? "found" : "NOT FOUND"}, ${told}`);
  if (violation) show(violation);
  return violation !== undefined;
}

function show({ rule, trace }: Violation): void {
  say(`  BROKEN: ${rule}`);
  for (const [at, step] of trace.entries()) say(`    ${String(at + 1).padStart(2)}. ${step}`);
}
