/** `npm run bench`: measures what the service costs, and tells it in tables. */
import { Command } from "commander";
import { parseWholeNumber } from "../../shared/admin/argument-parsers.ts";
import { madeUpAnswers, recordedAnswers } from "../harness/fixtures/provider-answers.ts";
import { reportOf } from "./answers.ts";
import { measureThroughput } from "./throughput.ts";

const measuredMsDefault = 1_000;
const doorMsDefault = 3_000;

interface AnswersOptions {
  recordings?: string;
  ms: number;
}

function answers({ recordings, ms }: AnswersOptions): void {
  const recorded = recordings === undefined ? [] : recordedAnswers(recordings);
  if (recordings !== undefined && recorded.length === 0)
    program.error(`There are no recorded answers in ${recordings}.`);
  process.stdout.write(reportOf([...madeUpAnswers(), ...recorded], { measuredMs: ms }));
}

async function doors(options: { ms: number }): Promise<void> {
  process.stdout.write(await measureThroughput(options));
}

const program = new Command("npm run bench --")
  .description("Measures what the service costs, and tells it in tables.")
  .showHelpAfterError();

program
  .command("all", { isDefault: true })
  .description("every benchmark, one after the other")
  .action(async () => {
    answers({ ms: measuredMsDefault });
    await doors({ ms: doorMsDefault });
  });

program
  .command("answers")
  .description("what each provider's adapter makes of answers: what comes out of what they hold, and what it costs")
  .option("--recordings <dir>", "recorded answers besides the made-up ones: <dir>/<provider>/<name>.json")
  .option("--ms <n>", "how long each page is read, and parsed, in milliseconds", parseWholeNumber(1), measuredMsDefault)
  .action(answers);

program
  .command("doors")
  .description("searches per second over REST and over MCP")
  .option("--ms <n>", "how long each is measured, three times, in milliseconds", parseWholeNumber(1), doorMsDefault)
  .action(doors);

await program.parseAsync();
