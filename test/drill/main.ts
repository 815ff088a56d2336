/**
 * `npm run drill`: breaks each part of the service under load, and reports which alert came, and after how long; or how soon
 * answers flow again after a failover.
 */
import { Command } from "commander";
import { parseWholeNumber } from "../../commands/argument-parsers.ts";
import { say } from "../faults/report.ts";
import { interruptibly } from "../harness/processes/interruptibly.ts";
import { withoutHaproxy } from "../harness/servers/haproxy.ts";
import { withoutPostgresPair } from "../harness/servers/postgres-pair.ts";
import { hasPrometheus } from "../harness/servers/prometheus.ts";
import { drills } from "./all.ts";
import { type Drill, type DrillResult, isPassed } from "./drill.ts";
import { type Failover, type FailoverContext, type FailoverResult, missesOf } from "./failovers/failover.ts";
import { postgresFailovers } from "./failovers/postgres-failovers.ts";
import { redisFailovers } from "./failovers/redis-failovers.ts";
import { failoverConclusion, failoverReport } from "./failovers/report.ts";
import { runFailover } from "./failovers/run-failover.ts";
import { conclusionOf, reportOf } from "./report.ts";
import { runDrill } from "./run-drill.ts";

const stacksDefault = 3;
const failovers = [...redisFailovers, ...postgresFailovers];

const namesOf = (all: readonly { name: string }[]) => all.map(({ name }) => name).join(", ");

interface Options {
  only?: string[];
  json?: true;
}

async function runDrills({ only, stacks, json }: Options & { stacks: number }): Promise<void> {
  const unknown = only?.find((name) => !drills.some((drill) => drill.name === name));
  if (unknown !== undefined) throw new Error(`There is no drill ${unknown}. Known: ${namesOf(drills)}.`);
  if (!hasPrometheus())
    throw new Error("A drill needs the programs prometheus and promtool (Debian: apt-get install prometheus).");
  const chosen = drills.filter(({ name }) => only === undefined || only.includes(name));
  await runAll<Drill, DrillResult>(chosen, {
    plural: "drills",
    stacks,
    run: runDrill,
    report: (results) => (json ? JSON.stringify(results) : `${reportOf(results)}\n${conclusionOf(results)}`),
    isPassed,
  });
}

async function runFailovers({ only, json }: Options): Promise<void> {
  const chosen = failovers.filter(({ name }) => only?.some((part) => name.includes(part)) ?? true);
  if (chosen.length === 0) throw new Error(`No failover has a name with ${only?.join(" or ")} in it.`);
  const missing = withoutHaproxy || withoutPostgresPair;
  if (missing) throw new Error(`The failovers need Debian's packages haproxy and postgresql${missing}.`);
  await runAll<Failover, FailoverResult>(chosen, {
    plural: "failovers",
    stacks: 1,
    run: async (failover, context) => {
      const result = await runFailover(failover, context);
      for (const miss of missesOf(result)) say(`${failover.name}: MISSED: ${miss}`);
      return result;
    },
    report: (results) =>
      json ? JSON.stringify(results) : `${failoverReport(results)}\n${failoverConclusion(results)}`,
    isPassed: (result) => missesOf(result).length === 0,
  });
}

/**
 * Runs them on parallel stacks, because a drill mostly waits, the slow ones first, and prints a report. @throws if one could not
 * run, and when interrupted.
 */
async function runAll<One extends { name: string; withinMs?: number }, Result>(
  chosen: readonly One[],
  options: {
    plural: string;
    stacks: number;
    run: (one: One, context: FailoverContext) => Promise<Result>;
    report: (results: readonly Result[]) => string;
    isPassed: (result: Result) => boolean;
  },
): Promise<void> {
  const { plural, stacks, run, report } = options;
  const waiting = chosen.toSorted((one, other) => (other.withinMs ?? 0) - (one.withinMs ?? 0));
  const ended = new Map<One, Result>();
  await interruptibly(async (interrupted) => {
    const work = async () => {
      for (let one = waiting.shift(); one; one = waiting.shift()) {
        try {
          ended.set(one, await run(one, { say, interrupted }));
        } catch (error) {
          interrupted.throwIfAborted();
          say(`${one.name}: could not run: ${String(error)}`);
        }
        say(`${one.name}: ended; ${waiting.length} of ${chosen.length} ${plural} wait for a stack`);
      }
    };
    await Promise.allSettled(Array.from({ length: stacks }, work)); // After an interruption each closes its stack.
    interrupted.throwIfAborted();
    const results = chosen.flatMap((one) => ended.get(one) ?? []);
    process.stdout.write(`${report(results)}\n`);
    const failed = chosen.length - results.length;
    if (failed > 0) throw new Error(`${failed} of ${chosen.length} ${plural} could not run.`);
    process.exitCode = results.every(options.isPassed) ? 0 : 1;
  });
}

const alerts = new Command("alerts")
  .description(
    "Breaks each part of the service under steady load, with its own servers and processes and a real Prometheus with " +
      "the shipped rules. Reports which alerts came and after how long; exits with 1 if an expected one did not come, or " +
      "if a total outage paged later than after two minutes. This is the command without a name.",
  )
  .option("--only <names...>", `only these drills, of ${namesOf(drills)}`)
  .option("--stacks <n>", "how many stacks run drills in parallel", parseWholeNumber(1), stacksDefault)
  .option("--json", "print the results as JSON instead of a table")
  .showHelpAfterError()
  .action(runDrills);

const failoversCommand = new Command("failovers")
  .description(
    "Replaces the primary of Redis and of Postgres under even load, in each way in which it can go: killed, frozen, cut off, " +
      "switched over. Compares each answer with the ledger. Exits with 1 if searches went unanswered for longer than the " +
      "target, if a mil was lost that the service does not name, or if a process had to be restarted. Takes 20 minutes.",
  )
  .option("--only <parts...>", `only those whose name contains one of these, of ${namesOf(failovers)}`)
  .option("--json", "print the results as JSON instead of a table")
  .showHelpAfterError()
  .action(runFailovers);

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
