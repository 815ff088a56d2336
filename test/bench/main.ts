/** `npm run bench`: measures the adapters and the throughput of the service, and prints tables. */
import { Command } from "commander";
import { parseWholeNumber } from "../../shared/admin/argument-parsers.ts";
import { madeUpAnswers, recordedAnswers } from "../harness/fixtures/provider-answers.ts";
import { answersReport } from "./answers.ts";
import { measureHistory } from "./history.ts";
import { measureThroughput } from "./throughput.ts";

const measuredMsDefault = 1_000;
const throughputMsDefault = 3_000;
const historyEntriesDefault = 1_000_000;

interface AnswersOptions {
  recordings?: string;
  ms: number;
}

function answers({ recordings, ms }: AnswersOptions): void {
  const recorded = recordings === undefined ? [] : recordedAnswers(recordings);
  if (recordings !== undefined && recorded.length === 0) program.error(`No recorded answers in ${recordings}.`);
  process.stdout.write(answersReport([...madeUpAnswers(), ...recorded], { measuredMs: ms }));
}

async function throughput(options: { ms: number }): Promise<void> {
  process.stdout.write(await measureThroughput(options));
}

async function history(options: { entries: number }): Promise<void> {
  process.stdout.write(await measureHistory(options));
}

const program = new Command("npm run bench --")
  .description("Measures the adapters and the throughput of the service, and prints tables.")
  .showHelpAfterError();

program
  .command("all", { isDefault: true })
  .description("run every benchmark, one after the other")
  .action(async () => {
    answers({ ms: measuredMsDefault });
    await throughput({ ms: throughputMsDefault });
    await history({ entries: historyEntriesDefault });
  });

program
  .command("answers")
  .description("what each provider's adapter extracts from answers, and what reading them costs")
  .option("--recordings <dir>", "also read recorded answers: <dir>/<provider>/<name>.json")
  .option("--ms <n>", "milliseconds of measuring each page", parseWholeNumber(1), measuredMsDefault)
  .action(answers);

program
  .command("throughput")
  .alias("doors")
  .description("searches per second over REST and MCP")
  .option("--ms <n>", "milliseconds of measuring each protocol, three times", parseWholeNumber(1), throughputMsDefault)
  .action(throughput);

program
  .command("history")
  .description("the queries of the billing page, and settling with and without their index, on a long ledger")
  .option("--entries <n>", "entries of the organization", parseWholeNumber(1_000), historyEntriesDefault)
  .action(history);

await program.parseAsync();
