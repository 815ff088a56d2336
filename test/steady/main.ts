/**
 * `npm run test:steady -- FILE`: runs a test file again and again on a busy machine, until it fails or has passed often enough.
 */
import { availableParallelism } from "node:os";
import { Command } from "commander";
import { parseWholeNumber } from "../../commands/argument-parsers.ts";
import { repeat, runTestFile, summaryOf, withLoad } from "./repeat.ts";

const timesDefault = 20;
// One more than there are cores, so that every process must wait for its turn.
const loopsDefault = availableParallelism() + 1;

const program = new Command("npm run test:steady --")
  .description(
    "Runs a test file repeatedly while busy loops load every core. Stops at the first failure and prints its output. " +
      "A test that waits for an event passes every time; a test that waits for the clock does not.",
  )
  .argument("<file>", "the test file, for example test/journeys/search.test.ts")
  .option("--times <n>", "how many times to run the file", parseWholeNumber(1), timesDefault)
  .option("--loops <n>", "how many busy loops run meanwhile", parseWholeNumber(0), loopsDefault)
  .showHelpAfterError()
  .action(async (file: string, { times, loops }: { times: number; loops: number }) => {
    const say = (text: string) => void process.stdout.write(`${text}\n`);
    say(`${file}: ${times} runs beside ${loops} busy loops`);
    const runs = await withLoad(loops, () => repeat({ times, run: () => runTestFile(file), say }));
    say(summaryOf(runs, times));
    process.exitCode = runs.every(({ passed }) => passed) ? 0 : 1;
  });

await program.parseAsync();
