import type { Command } from "commander";
import { recordAudit } from "../shared/audit/audit.ts";
import { readSearchOwner } from "../api/ledger/history.ts";
import { timeOfId } from "../shared/ids.ts";
import { type NoCall, type RawAnswer, readRawAnswers } from "../worker/raw-answers/raw-answers.ts";
import { parseRequestId, parseWholeNumber } from "./argument-parsers.ts";
import { CommandRefused } from "./command-refused.ts";
import { exitCodes } from "./terminal.ts";
import { requireRedis } from "./out-of-reach.ts";
import type { CommandContext, RunCommand } from "./run-command.ts";
import { addSearchLogCommands } from "./search-log.ts";

const pageMax = 1_000;
/** The clocks of the machines may differ, and the answers expire some time after the search began. */
const expiryMarginMs = 5 * 60_000;

/** `callsOf` is another search than `requestId` if that one made no call of its own. */
type RawSearch = { requestId: string; from: NoCall["from"]; callsOf: string; answers: RawAnswer[] };
type Options = { page?: number; body?: true };

export function addSearchCommands(program: Command, run: RunCommand): void {
  const search = program.command("search").description("searches: queries, failures, and the providers' answers");
  addSearchLogCommands(search, run);
  search
    .command("raw")
    .argument("<request>", "the id of the search, as in requestId and X-Request-Id", parseRequestId)
    .summary("print the providers' raw answers to a search; needs RAW_ANSWER_MINUTES")
    .description(
      "Print the providers' raw answers to a search, by page: status, outcome and body, without our keys. The workers keep them for RAW_ANSWER_MINUTES.",
    )
    .option("--page <n>", "only the calls for this page", parseWholeNumber(1, pageMax))
    .option("--body", "print only the raw bodies, each on its own lines")
    .addHelpText(
      "after",
      "\nA search that shared the answer of another one, or got it from the cache, made no call. Then callsOf names the search that made the calls, and its answers are printed.\nExample: npm run --silent admin -- search raw req_01m7xy02p3f9xsnhttx3p2c6sn --page 1 --body | jq .",
    )
    .action((requestId: string, options: Options) =>
      run((context) => readRaw(context, requestId, options), {
        exitCode: ({ answers }) => (options.body && answers.every(({ body }) => body === null) ? exitCodes.refused : 0),
        toData: options.body && toBodies,
      }),
    );
}

async function readRaw(context: CommandContext, requestId: string, { page, body }: Options): Promise<RawSearch> {
  await requireRedis(context);
  const search = await readSearch(context, requestId);
  const answers = search.answers.filter((answer) => page === undefined || answer.page === page);
  if (answers.length === 0) throw new CommandRefused(`${search.callsOf} made no call for page ${page}.`);
  if (body) warnOfMissing(context, search, answers);
  await recordReading(context, search);
  return { ...search, answers };
}

/** Recorded before anything is shown. A search that was answered a moment ago may have no organization in the ledger yet. */
async function recordReading({ database, actor }: CommandContext, { requestId, callsOf }: RawSearch): Promise<void> {
  const organizationId = await readSearchOwner(database, requestId);
  const entry = { action: "search.raw_read", organizationId, subject: requestId, after: { callsOf } } as const;
  await recordAudit(database, actor, entry);
}

/** The calls of a search, or of the search whose answer it shared. @throws {CommandRefused} if there is none. */
async function readSearch(context: CommandContext, requestId: string): Promise<RawSearch> {
  const kept = await readRawAnswers(context.redis, requestId);
  if (!kept) throw new CommandRefused(await whyNothing(context, requestId));
  const { answers, noCall } = kept;
  if (answers.length > 0 || !noCall) return { requestId, from: "provider", callsOf: requestId, answers };
  const { from, callsOf } = noCall;
  if (from === "provider") throw new CommandRefused(`${requestId} ended before a provider was called.`);
  if (callsOf === null) throw new CommandRefused(`${requestId} made no call: ${unknownSource[from]}.`);
  const shared = await readRawAnswers(context.redis, callsOf);
  if (shared && shared.answers.length > 0) return { requestId, from, callsOf, answers: shared.answers };
  throw new CommandRefused(
    `${requestId} made no call. It shared the answer of ${callsOf}, whose raw answers have expired.`,
  );
}

/** Of a search that made no call, if it is unknown which search did. */
const unknownSource = {
  cache: "its answer came from the cache, and the raw answers of the cached search were not kept",
  shared:
    "it shared the answer of an identical search whose raw answers were not kept, or waited until its deadline or until its caller disconnected",
};

/** As much as can be known of a search without raw answers. */
async function whyNothing({ config, database }: CommandContext, requestId: string): Promise<string> {
  const minutes = config.RAW_ANSWER_MINUTES;
  const nothing = `No raw answers of ${requestId} are kept`;
  const beganAt = timeOfId(requestId);
  const isOld = Date.now() - beganAt.getTime() > minutes * 60_000 + expiryMarginMs;
  const isDecided = (await readSearchOwner(database, requestId)) !== undefined;
  if (!isDecided && isOld) return `${nothing}: the search does not exist, or was refused before it ran.`;
  if (minutes === 0)
    return `${nothing}: RAW_ANSWER_MINUTES is 0, the default. Set it for the workers, and for this command, before the search.`;
  if (!isDecided) return `${nothing}: the search still runs, was refused before it ran, or does not exist.`;
  if (isOld)
    return `${nothing}: they have expired. The search began at ${beganAt.toISOString()}, and RAW_ANSWER_MINUTES is ${minutes}.`;
  return `${nothing}: they have expired, RAW_ANSWER_MINUTES was 0 in the worker, or Redis did not accept them (raw_answers_total).`;
}

function warnOfMissing({ warn }: CommandContext, { requestId, callsOf }: RawSearch, answers: readonly RawAnswer[]) {
  if (callsOf !== requestId) warn(`${requestId} made no call: these are the answers to ${callsOf}.`);
  for (const { provider, page, outcome, body, bodyCharacters } of answers) {
    if (body === null) warn(`${provider}, page ${page}: no answer came (${outcome}).`);
    else if (body.length < bodyCharacters)
      warn(`${provider}, page ${page}: the first ${body.length} of ${bodyCharacters} characters.`);
  }
}

/** Each body ends with a line break, so that a reader of JSON can tell them apart. */
function toBodies({ answers }: RawSearch): string {
  return answers.flatMap(({ body }) => (body === null ? [] : [body.endsWith("\n") ? body : `${body}\n`])).join("");
}
