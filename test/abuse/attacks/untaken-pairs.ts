import { setTimeout as sleep } from "node:timers/promises";
import { tally } from "../../faults/scenarios/statistics.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { unpaidCalls as countedCalls } from "../../harness/assertions/metrics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { delayed } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { largestAnswer } from "../callers/answer-sizes.ts";
import { Connection } from "../../harness/clients/connection.ts";
import { type Credential, getBytes, largestFile, searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../../harness/clients/responses.ts";

const pages = 10;
const pageMs = 500;
const unpaidCalls = 40;
// One token may use half of the budget; the pair that uses it up comes on top.
const callsMax = unpaidCalls / 2 + pages;
const stepBytes = 64 * 1_024;
const stepMs = 100;
const boundMs = 60_000;
const refused = "429 unpaid_calls";
/** At most: the attacker is refused before, but on a busy machine some pairs are paid, and use up nothing. */
const pairs: Record<Strength, number> = { quick: 12, full: 20 };

/** Two equal searches share their provider calls. Both answers wait behind a file that the attacker stops reading. */
export const untakenPairs: Attack = {
  name: "untaken-pairs",
  tried: `pairs of equal searches of depth ${pages * 10}, each behind a file that fills the socket buffers, reset once both are charged, with a budget of ${unpaidCalls} unpaid calls an hour`,
  sharesStack: true,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    provider.otherwise = delayed(pageMs, largestAnswer);
    const attacker = await service.organization({ terms: { concurrency: 2, unpaidCalls } });
    const [calls, counted] = [provider.requests.length, await countedCalls(service)];
    const outcomes: string[] = [];
    const kindsNow = async () => (await service.ledgerOf(attacker.organizationId)).map(({ kind }) => kind);
    let paidCalls = 0; // On a busy machine an answer may reach the attacker's socket, and is then paid with its calls.
    for (let pair = 0; pair < pairs[strength] && outcomes.at(-1) !== refused; pair += 1) {
      const paidBefore = standingIn(await kindsNow());
      outcomes.push(...(await leavePair(stack, attacker, `untaken ${pair}`)));
      await service.rest(attacker.organizationId);
      if (standingIn(await kindsNow()) > paidBefore) paidCalls += pages;
    }
    const asked = provider.requests.length - calls - paidCalls;
    const unpaid = (await countedCalls(service)) - counted;
    const kinds = await kindsNow();
    const reversals = kinds.filter((kind) => kind === "reversal").length;
    return [
      {
        promised: `at most ${callsMax} provider calls stay unpaid, each counted once, and the search that shared them as one more, then 429 with the reason unpaid_calls`,
        seen: `${asked} calls besides ${paidCalls} paid ones, ${unpaid} counted; ${tally(outcomes)}; ${tally(kinds)}`,
        held: asked <= callsMax && unpaid >= asked && unpaid < asked + reversals && outcomes.at(-1) === refused,
      },
    ];
  },
};

/** How many of the charges were not reversed. */
const standingIn = (kinds: readonly string[]) =>
  kinds.filter((kind) => kind === "charge").length - kinds.filter((kind) => kind === "reversal").length;

/** Sends a pair and resets it once both searches are charged. @returns how they ended for the attacker. */
async function leavePair(
  { service, apiUrl: url }: AttackStack,
  { organizationId, token }: Organization,
  keyword: string,
) {
  const by = { url, token };
  const connections = await Promise.all([beginSearch(by, keyword), beginSearch(by, keyword)]);
  const kindsNow = async () => (await service.ledgerOf(organizationId)).map(({ kind }) => kind);
  const charges = (kinds: readonly string[]) => kinds.filter((kind) => kind === "charge").length;
  const before = charges(await kindsNow());
  const held = async () => (await service.holdsOf(organizationId)).open;
  const refusals = () => connections.flatMap((connection) => responsesIn(connection.received).slice(1).map(outcomeOf));
  // Reads only as much of the files as it takes for both searches to begin.
  for (let step = 1; (await held()) < 2 && refusals().length < 2 && step * stepBytes < fileBytesMax; step += 1) {
    await Promise.all(connections.map((connection) => connection.readBytes(step * stepBytes, stepMs)));
    await sleep(1);
  }
  const ended = refusals();
  if (ended.length === 0) await becomes(async () => charges(await kindsNow()) === before + 2, boundMs);
  for (const connection of connections) connection.reset();
  return ended.length > 0 ? ended : ["left", "left"];
}
const fileBytesMax = 16 * 1_048_576;

async function beginSearch(by: Credential, keyword: string): Promise<Connection> {
  const connection = await Connection.open(by.url);
  connection.send(getBytes(by.url, largestFile));
  connection.send(searchBytes(by, { keyword, depth: pages * 10 }));
  return connection;
}
