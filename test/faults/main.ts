/** `npm run faults`: tries to break every promise about money, and reports which ones held. */
import { Argument, Command, Option } from "commander";
import { parseWholeNumber } from "../../commands/argument-parsers.ts";
import { startPostgres } from "../../local/postgres.ts";
import { runCrashPoints } from "./crash-points/run.ts";
import { moneyModel } from "./money.ts";
import { runMutants } from "./mutants/run.ts";
import { type FaultName, faultNames } from "./random/faults.ts";
import { randomFaults } from "./random/report.ts";
import { conclude, type Row, runCommand, say } from "./report.ts";
import { scenarios } from "./scenarios/all.ts";

// A crash point mostly waits until other processes notice the death.
const stacksDefault = 6;
// A test of a mutant mostly waits for its servers and processes.
const mutantsAtOnceDefault = 4;
const modelRunsDefault = 3_000;

/** Starts a Postgres for one command. Each run in it creates its own database. */
async function withPostgres(use: (postgresUrl: string) => Promise<Row[]>): Promise<Row[]> {
  const postgres = await startPostgres();
  try {
    return await use(postgres.url);
  } finally {
    await postgres.stop();
  }
}

const crashPoints = (options: { only?: string; stacks: number; retry?: boolean }) =>
  withPostgres((postgresUrl) => runCrashPoints({ ...options, postgresUrl, say }));

const money = (options: { seed?: number; runs: number; shrink?: boolean }) =>
  withPostgres((postgresUrl) => moneyModel({ ...options, postgresUrl, say }));

const measureScenarios = (only?: string) =>
  withPostgres(async (postgresUrl) => {
    const chosen = scenarios.filter(({ name }) => only === undefined || name === only);
    const rows: Row[] = [];
    for (const scenario of chosen) {
      say(scenario.name);
      rows.push(...(await scenario.run({ postgresUrl, say })));
    }
    return rows;
  });

const program = new Command("npm run faults --")
  .description(
    "Tries to break every promise about money, with its own servers and processes, and reports which ones held.",
  )
  .showHelpAfterError();

program
  .command("all", { isDefault: true })
  .description("crash points, random faults, the money model and the scenarios, one after the other: 20 minutes")
  .action(async () => {
    conclude([
      ...(await crashPoints({ stacks: stacksDefault })),
      ...(await randomFaults({ seed: 1, seeds: 10, searches: 1_000, say })),
      ...(await money({ runs: modelRunsDefault })),
      ...(await measureScenarios()),
    ]);
  });

program
  .command("crash-points")
  .description("kills a process before and after each step of a search, and audits the ledger")
  .option("--only <text>", "only the cases whose name contains this, for example worker:settle:after")
  .option("--stacks <n>", "how many stacks run cases in parallel", parseWholeNumber(1), stacksDefault)
  .option("--retry", "run a case that did not hold once more, alone: its outcome counts")
  .action(async (options: { only?: string; stacks: number; retry?: boolean }) => conclude(await crashPoints(options)));

program
  .command("random")
  .description("searches under random faults; a seed fixes the plan")
  .option("--seed <n>", "the first seed", parseWholeNumber(0), Date.now() % 1_000_000)
  .option("--seeds <n>", "number of seeds, one after the other", parseWholeNumber(1), 10)
  .option("--searches <n>", "searches per seed", parseWholeNumber(1), 1_000)
  .addOption(new Option("--only <fault>", "only this fault").choices(faultNames))
  .action(async (options: { seed: number; seeds: number; searches: number; only?: FaultName }) => {
    conclude(await randomFaults({ ...options, say }));
  });

program
  .command("money")
  .description("sends random commands to the real scripts and functions, and compares each outcome with a small model")
  .option("--seed <n>", "the seed that a failed run printed", parseWholeNumber(-(2 ** 31), 2 ** 31 - 1))
  .option("--runs <n>", "number of runs, of up to 40 commands each", parseWholeNumber(1), modelRunsDefault)
  .option("--no-shrink", "report the first failure as it is, and look for no smaller one")
  .action(async (options: { seed?: number; runs: number; shrink: boolean }) => conclude(await money(options)));

program
  .command("scenarios")
  .description("measures the promised figures")
  .addArgument(new Argument("[name]", "only this scenario").choices(scenarios.map(({ name }) => name)))
  .action(async (name?: string) => conclude(await measureScenarios(name)));

program
  .command("mutants")
  .description("plants each known bug in a copy of the code, and reports whether the tests catch each")
  .option("--only <name>", "only this mutant")
  .option("--at-once <n>", "how many mutants run at a time", parseWholeNumber(1), mutantsAtOnceDefault)
  .action(async (options: { only?: string; atOnce: number }) => conclude(await runMutants({ ...options, say })));

await runCommand(program);
