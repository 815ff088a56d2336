import { Command, Option } from "commander";
import { type DesignBug, bugs } from "./bugs.ts";
import { asBuilt } from "./design.ts";
import { explore, type Violation } from "./explore.ts";
import { type Scenario, scenarios } from "./scenarios.ts";
import { restIsReachable } from "./invariants.ts";

/** `npm run model`: explores every scenario, then shows that each design bug is found. Exits with 1 if either fails. */

const statesMax = 12_000_000;
const restAskedMax = 150_000;

const say = (text: string) => process.stdout.write(`${text}\n`);

const program = new Command("npm run model --")
  .description(
    "Explores all states of the money protocol within the bounds of each scenario, and checks the invariants.",
  )
  .addOption(new Option("--scenario <name>", "only this scenario").choices(scenarios.map(({ name }) => name)))
  .action(run);

program.parse();

function run({ scenario }: { scenario?: string }): void {
  const isAll = scenario === undefined;
  const chosen = scenarios.filter(({ name }) => isAll || name === scenario);

  const sane = chosen.map(exploreScenario).every(Boolean);
  const caught = !isAll || bugs.map(find).every(Boolean);
  if (sane && caught) return;
  say(sane ? "A design bug was not found." : "A rule is broken, or a scenario was not explored to its end.");
  process.exitCode = 1;
}

/** @returns whether every state was visited, and every rule holds in each. */
function exploreScenario(scenario: Scenario): boolean {
  const { keyed, name } = scenario;
  const faults = Object.entries(scenario.faults).map(([fault, times]) => `${fault} ${times}`);
  const found = explore({ ...scenario, design: asBuilt }, { statesMax, restAskedMax });
  say(
    `${name}: ${keyed.map((isKeyed) => (isKeyed ? "keyed" : "unkeyed")).join(", ")}; ${faults.join(", ") || "no fault"}`,
  );
  const states = `${found.states.toLocaleString("en")} states, ${found.resting} at rest, depth ${found.depth}`;
  const bounds = found.isExhaustive ? "exhaustive" : "NOT exhaustive, the bound on states was reached";
  const rest = found.isRestAsked ? `, ${restIsReachable}` : "";
  say(`  ${states}, ${found.seconds.toFixed(1)} s, ${bounds}${found.violations.length > 0 ? "" : rest}`);
  for (const violation of found.violations) show(violation);
  return found.isExhaustive && found.violations.length === 0;
}

/** @returns whether the design bug was found by the rule that it breaks. */
function find({ name, rule, config }: DesignBug): boolean {
  const { violations, states, seconds } = explore(config, { statesMax, restAskedMax, until: rule });
  const violation = violations.find((one) => one.rule === rule);
  const size = `${states.toLocaleString("en")} states, ${seconds.toFixed(1)} s`;
  say(`design bug: ${name}: ${violation ? "found" : "NOT FOUND"}, ${size}`);
  if (violation) show(violation);
  return violation !== undefined;
}

function show({ rule, trace }: Violation): void {
  say(`  BROKEN: ${rule}`);
  for (const [at, step] of trace.entries()) say(`    ${String(at + 1).padStart(2)}. ${step}`);
}
