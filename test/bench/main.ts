/** `npm run bench`: measures what the service costs, and tells it in tables. */
import { Command } from "commander";
import { wholeNumber } from "../../shared/admin/arguments.ts";
import { madeUpAnswers, recordedAnswers } from "../harness/answers.ts";
import { reportOf } from "./answers.ts";

const measuredMsDefault = 1_000;

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

const program = new Command("npm run bench --")
  .description("Measures what the service costs, and tells it in tables.")
  .showHelpAfterError();

program
  .command("all", { isDefault: true })
  .description("every benchmark, one after the other")
  .action(() => answers({ ms: measuredMsDefault }));

program
  .command("answers")
  .description("what each provider's adapter makes of answers: what comes out of what they hold, and what it costs")
  .option("--recordings <dir>", "recorded answers besides the made-up ones: <dir>/<provider>/<name>.json")
  .option("--ms <n>", "how long each page is read, and parsed, in milliseconds", wholeNumber(1), measuredMsDefault)
  .action(answers);

await program.parseAsync();
