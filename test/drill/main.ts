/**
 * `npm run drill`: breaks each part of the service under load, and reports which alert came, and after how long; or how soon
 * answers flow again after a failover.
 */
import { Command } from "commander";
import { parseWholeNumber } from "../../commands/argument-parsers.ts";
import { say } from "../faults/report.ts";
import { interruptibly } from "../harness/processes/interruptibly.ts";
import { hasPrometheus } from "../harness/servers/prometheus.ts";
import { drills } from "./all.ts";
import { type Drill, type DrillResult, isPassed } from "./drill.ts";
import { failoversCommand } from "./failovers/command.ts";
import { conclusionOf, reportOf } from "./report.ts";
import { runDrill } from "./run-drill.ts";

const stacksDefault = 3;

const drillNames = drills.map(({ name }) => name).join(", ");

interface DrillOptions {
  only?: string[];
  stacks: number;
  json?: true;
}

async function run({ only, stacks, json }: DrillOptions): Promise<void> {
  const unknown = only?.find((name) => !drills.some((drill) => drill.name === name));
  if (unknown !== undefined) throw new Error(`There is no drill ${unknown}. Known: ${drillNames}.`);
  if (!hasPrometheus())
    throw new Error("A drill needs the programs prometheus and promtool (Debian: apt-get install prometheus).");
  await interruptibly(async (interrupted) => {
    const chosen = drills.filter(({ name }) => only === undefined || only.includes(name));
    const results = await runSideBySide(chosen, stacks, interrupted);
    process.stdout.write(json ? `${JSON.stringify(results)}\n` : `${reportOf(results)}\n${conclusionOf(results)}\n`);
    const failed = chosen.length - results.length;
    if (failed > 0) throw new Error(`${failed} of ${chosen.length} drills could not run.`);
    process.exitCode = results.every(isPassed) ? 0 : 1;
  });
}

/**
 * Runs the drills on parallel stacks, because a drill mostly waits. The slow ones start first.
 * @returns the results of the drills that could run. @throws when interrupted.
 */
async function runSideBySide(chosen: readonly Drill[], stacks: number, interrupted: AbortSignal) {
  const waiting = chosen.toSorted((one, other) => (other.withinMs ?? 0) - (one.withinMs ?? 0));
  const results = new Map<Drill, DrillResult>();
  const work = async () => {
    for (let drill = waiting.shift(); drill; drill = waiting.shift()) {
      try {
        results.set(drill, await runDrill(drill, { say, interrupted }));
      } catch (error) {
        interrupted.throwIfAborted();
        say(`${drill.name}: could not run: ${String(error)}`);
      }
      say(`${drill.name}: ended; ${waiting.length} of ${chosen.length} drills wait for a stack`);
    }
  };
  await Promise.allSettled(Array.from({ length: stacks }, work)); // After an interruption each closes its stack.
  interrupted.throwIfAborted();
  return chosen.flatMap((drill) => results.get(drill) ?? []);
}

const alerts = new Command("alerts")
  .description(
    "Breaks each part of the service under steady load, with its own servers and processes and a real Prometheus with " +
      "the shipped rules. Reports which alerts came and after how long; exits with 1 if an expected one did not come, or " +
      "if a total outage paged later than after two minutes. This is the command without a name.",
  )
  .option("--only <names...>", `only these drills, of ${drillNames}`)
  .option("--stacks <n>", "how many stacks run drills in parallel", parseWholeNumber(1), stacksDefault)
  .option("--json", "print the results as JSON instead of a table")
  .showHelpAfterError()
  .action(run);

const program = new Command("npm run drill --")
  .description("Breaks the service under load, and reports what an operator notices.")
  .addCommand(alerts, { isDefault: true })
  .addCommand(failoversCommand);

try {
  await program.parseAsync();
} catch (error) {
  // Not 1: a run that failed says nothing about the alerts.
  say(error instanceof Error ? error.message : String(error));
  process.exit(Number(process.exitCode ?? 2)); // Whatever was under way when a signal came ends here too.
}
