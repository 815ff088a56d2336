/** `npm run faults`: tries to break every promise about money, and tells what held. */
import { Command, InvalidArgumentError, Option } from "commander";
import { findPlantedBugs } from "./planted/planted.ts";
import { type FaultName, faultNames } from "./random/faults.ts";
import { type Row, tableOf } from "./report.ts";
import { randomFaults } from "./random/report.ts";

const say = (line: string) => void process.stderr.write(`${line}\n`);

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("expected a whole number");
  return Number(text);
}

/** Prints what was tried; the exit code tells whether all of it held. */
function conclude(rows: readonly Row[]): void {
  process.stdout.write(`${tableOf(rows)}\n`);
  const broken = rows.filter(({ held }) => !held).length;
  process.stdout.write(broken === 0 ? "Everything held.\n" : `${broken} of ${rows.length} did not hold.\n`);
  process.exitCode = broken === 0 ? 0 : 1;
}

const program = new Command("npm run faults --")
  .description("Tries to break every promise about money, with servers and processes of its own, and tells what held.")
  .showHelpAfterError();

program
  .command("random")
  .description("searches under faults at random: each seed is a schedule that can be played again")
  .option("--seed <n>", "the first seed", wholeNumber, Date.now() % 1_000_000)
  .option("--seeds <n>", "how many seeds, one after the other", wholeNumber, 10)
  .option("--searches <n>", "searches of each seed", wholeNumber, 1_000)
  .addOption(new Option("--only <fault>", "this fault alone").choices(faultNames))
  .action(async (options: { seed: number; seeds: number; searches: number; only?: FaultName }) => {
    conclude(await randomFaults({ ...options, say }));
  });

program
  .command("planted")
  .description(
    "plants known bugs in copies of the code, one after the other, and tells whether each is caught; needs git",
  )
  .option("--only <name>", "this bug alone")
  .action(async ({ only }: { only?: string }) => conclude(await findPlantedBugs({ only, say })));

try {
  await program.parseAsync();
} catch (error) {
  // Not 1: that it could not be tried says nothing about the promise.
  say(String(error instanceof Error ? error.stack : error));
  process.exitCode = 2;
}
