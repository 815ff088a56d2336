/** `npm run bench`: measures the service and its parts, and prints tables. */
import { Command, Option } from "commander";
import { parseWholeNumber } from "../../commands/argument-parsers.ts";
import { httpProviders, madeUpAnswers, recordedAnswers } from "../harness/fixtures/provider-answers.ts";
import { interruptibly } from "../harness/processes/interruptibly.ts";
import { answersReport } from "./answers-report.ts";
import { cases } from "./cases.ts";
import { measureHistory } from "./history.ts";
import { even, latency, memory, type Output, throughput } from "./load-commands.ts";
import type { MemoryOptions } from "./memory.ts";
import { measurePages } from "./pages.ts";
import type { LoadOptions } from "./run.ts";

const measuredMsDefault = 1_000;
const historyEntriesDefault = 1_000_000;
const roundsDefault = 3;
const secondsDefault = 4;
const memorySearchesDefault = 200_000;

const print = (text: string) => void process.stdout.write(text);
const say = (line: string) => void process.stderr.write(`${line}\n`);

const measure = (use: (output: Output) => Promise<unknown>) =>
  interruptibly(async (interrupted) => void (await use({ print, say, interrupted })));

interface AnswersOptions {
  recordings?: string;
  provider?: string;
  ms: number;
}

function answers({ recordings, provider, ms }: AnswersOptions): void {
  const recorded = recordings === undefined ? [] : recordedAnswers(recordings);
  if (recordings !== undefined && recorded.length === 0) program.error(`No recorded answers in ${recordings}.`);
  const all = [...madeUpAnswers(), ...recorded];
  const chosen = provider === undefined ? all : all.filter((answer) => answer.provider === provider);
  print(answersReport(chosen, { measuredMs: ms }));
}

async function history(options: { entries: number }): Promise<void> {
  print(await measureHistory(options));
}

/** Adds the options of the commands that measure loads. */
const loadCommand = (name: Command) =>
  name
    .option("--rounds <n>", "rounds of each measurement; figures are their medians", parseWholeNumber(1), roundsDefault)
    .option("--seconds <n>", "seconds of each round", parseWholeNumber(1), secondsDefault)
    .option("--yardstick <dir>", "also measure the service in this folder: api.js, worker.js, seed.js, package.json");

const program = new Command("npm run bench --")
  .description("Measures the service and its parts, and prints tables. Progress goes to stderr.")
  .showHelpAfterError();

program
  .command("all", { isDefault: true })
  .description("answers, throughput and history, one after the other")
  .action(async () => {
    answers({ ms: measuredMsDefault });
    await measure((output) => throughput({ rounds: roundsDefault, seconds: secondsDefault }, output));
    await history({ entries: historyEntriesDefault });
  });

program
  .command("answers")
  .description("what each adapter extracts from answers, what it loses, and what reading costs")
  .option("--recordings <dir>", "also read recorded answers: <dir>/<provider>/<name>.json")
  .addOption(new Option("--provider <name>", "only the answers of this provider").choices(httpProviders))
  .option("--ms <n>", "milliseconds to measure each page", parseWholeNumber(1), measuredMsDefault)
  .action(answers);

loadCommand(program.command("throughput"))
  .description("searches per second, and the cost of a search in CPU, Redis, Postgres and memory, beside bare BullMQ")
  .addOption(new Option("--only <names...>", "only these cases").choices(cases.map(({ name }) => name)))
  .action((options: LoadOptions & { only?: string[] }) => measure((output) => throughput(options, output)));

loadCommand(program.command("latency"))
  .description("latency at fixed arrival rates, from a tenth of the peak to beyond it")
  .option("--svg <file>", "draw latency against load to this file")
  .addOption(
    new Option(
      "--provider-ms <n>",
      "call a provider over HTTP that takes this long; otherwise workers generate answers",
    )
      .argParser(parseWholeNumber(0))
      .conflicts("yardstick"),
  )
  .action((options: LoadOptions & { svg?: string; providerMs?: number }) =>
    measure((output) => latency(options, output)),
  );

loadCommand(program.command("even"))
  .description("latency and cost of searches that come evenly, and after steps, with a provider of 500 ms")
  .option("--svg <file>", "draw latency and cost against the rate to this file")
  .action((options: LoadOptions & { svg?: string }) => measure((output) => even(options, output)));

program
  .command("memory")
  .description("resident memory of an API and a worker, idle and while they answer searches")
  .option("--searches <n>", "total searches", parseWholeNumber(1), memorySearchesDefault)
  .option("--seconds <n>", "seconds between two readings", parseWholeNumber(1), secondsDefault)
  .option("--container", "with the heap of the docker compose containers", false)
  .action((options: MemoryOptions) => measure((output) => memory(options, output)));

program
  .command("history")
  .description("the queries of the account pages, and settlement with and without their index, on a long ledger")
  .option("--entries <n>", "entries of the organization", parseWholeNumber(1_000), historyEntriesDefault)
  .action(history);

program
  .command("pages")
  .description("weight and first paint of every page in its states, in Chromium")
  .option("--rounds <n>", "rounds of each page, of which the median counts", parseWholeNumber(1), roundsDefault)
  .option("--only <text>", "only the pages whose name contains it, such as overview or busy", "")
  .action(async (options: { rounds: number; only: string }) => print(await measurePages(options, say)));

try {
  await program.parseAsync();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exit(Number(process.exitCode ?? 1)); // After a signal, work may still be in progress.
}
