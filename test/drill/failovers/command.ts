import { Command } from "commander";
import { say } from "../../faults/report.ts";
import { interruptibly } from "../../harness/processes/interruptibly.ts";
import { withoutHaproxy } from "../../harness/servers/haproxy.ts";
import { withoutPostgresPair } from "../../harness/servers/postgres-pair.ts";
import { type FailoverResult, missesOf } from "./failover.ts";
import { postgresFailovers } from "./postgres-failovers.ts";
import { redisFailovers } from "./redis-failovers.ts";
import { failoverConclusion, failoverReport } from "./report.ts";
import { runFailover } from "./run-failover.ts";

/** Every failover, in the order of the report. */
export const failovers = [...redisFailovers, ...postgresFailovers];

interface FailoverOptions {
  only?: string[];
  json?: true;
}

async function run({ only, json }: FailoverOptions): Promise<void> {
  const chosen = failovers.filter(({ name }) => only?.some((part) => name.includes(part)) ?? true);
  if (chosen.length === 0) throw new Error(`No failover has a name with ${only?.join(" or ")} in it.`);
  const missing = withoutHaproxy || withoutPostgresPair;
  if (missing) throw new Error(`The failovers need Debian's packages haproxy and postgresql${missing}.`);
  await interruptibly(async (interrupted) => {
    const results: FailoverResult[] = [];
    for (const [at, failover] of chosen.entries()) {
      interrupted.throwIfAborted();
      say(`${failover.name} (${at + 1} of ${chosen.length})`);
      try {
        const result = await runFailover(failover, { say, interrupted });
        for (const miss of missesOf(result)) say(`  MISSED: ${miss}`);
        results.push(result);
      } catch (error) {
        interrupted.throwIfAborted();
        say(`${failover.name}: could not run: ${String(error)}`);
      }
    }
    process.stdout.write(
      json ? `${JSON.stringify(results)}\n` : `${failoverReport(results)}\n${failoverConclusion(results)}\n`,
    );
    const notRun = chosen.length - results.length;
    if (notRun > 0) throw new Error(`${notRun} of ${chosen.length} failovers could not run.`);
    process.exitCode = results.every((result) => missesOf(result).length === 0) ? 0 : 1;
  });
}

export const failoversCommand = new Command("failovers")
  .description(
    "Replaces the primary of Redis and of Postgres under even load, in each way in which it can go: killed, frozen, cut off, " +
      "switched over. Compares each answer with the ledger. Exits with 1 if searches went unanswered for longer than the " +
      "target, if a mil was lost that the service does not name, or if a process had to be restarted. Takes 20 minutes.",
  )
  .option(
    "--only <parts...>",
    `only those whose name contains one of these, of ${failovers.map(({ name }) => name).join(", ")}`,
  )
  .option("--json", "print the results as JSON instead of a table")
  .showHelpAfterError()
  .action(run);
