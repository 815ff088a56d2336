import { setTimeout as sleep } from "node:timers/promises";
import { keepInFlight } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { type SerperStub, tenOrganic } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../callers/connection.ts";
import { type Credential, searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";

const inFlightMax = 5;
const unpaidCalls = 16;
const pages = 10;
const pageMs = 300;
const boundMs = 60_000;
const crowded = "429 concurrency";
const crowdedPauseMs = 50;
const cancellations: Record<Strength, number> = { quick: 20, full: 50 };
// One token may use half of the budget; the calls in flight when that is used up come on top.
const callsMax = unpaidCalls / 2 + inFlightMax * pages;

/** Callers disconnect from searches that cost many provider calls as soon as the first call was sent. */
export const disconnectedSearches: Attack = {
  name: "disconnected-searches",
  tried: `searches of depth ${pages * 10} with a budget of ${unpaidCalls} unpaid calls an hour, disconnected as soon as the provider has been asked`,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    const mostAtOnce = answerSlowly(provider);
    const attacker = await service.organization({ terms: { concurrency: inFlightMax, unpaidCalls } });
    const honest = { organizations: await honestOrganizations(stack, 1), perSecond: 2 };
    const outcomes: string[] = [];
    const answers = await honestBeside(stack, honest, () =>
      keepInFlight(inFlightMax, async (caller) => {
        if (outcomes.filter((outcome) => outcome !== crowded).length >= cancellations[strength]) return false;
        const keyword = `disconnected ${caller} ${outcomes.length}`;
        outcomes.push(await disconnect(stack, { url: stack.apiUrl, token: attacker.token }, keyword));
        if (outcomes.at(-1) === crowded) await sleep(crowdedPauseMs);
        return true;
      }),
    );
    await service.rest();
    return [...judge(stack, outcomes), judgeSlots(mostAtOnce()), judgeHonest(answers)];
  },
};

/** @returns how the attacker's request ended: `disconnected`, or the refusal. */
async function disconnect({ provider }: AttackStack, by: Credential, keyword: string): Promise<string> {
  const connection = await Connection.open(by.url);
  connection.read();
  connection.send(searchBytes(by, { keyword, depth: pages * 10 }));
  const isAsked = () => provider.requests.some(({ body }) => body["q"] === keyword);
  const answered = () => responsesIn(connection.received);
  await becomes(async () => isAsked() || answered().length > 0, boundMs);
  connection.reset();
  const [response] = answered();
  return response ? outcomeOf(response) : "disconnected";
}

function judge({ provider }: AttackStack, outcomes: readonly string[]): Finding[] {
  const calls = provider.requests.filter(({ body }) => String(body["q"]).startsWith("disconnected"));
  const searches = new Set(calls.map(({ body }) => body["q"])).size;
  return [
    {
      promised: `at most ${callsMax} provider calls stay unpaid`,
      seen: `${searches} searches, ${calls.length} provider calls`,
      held: calls.length <= callsMax,
    },
    {
      promised: "while their calls run, 429 with the reason concurrency; then 429 with the reason unpaid_calls",
      seen: tally(outcomes),
      held: outcomes.includes(crowded) && outcomes.includes("429 unpaid_calls"),
    },
  ];
}

const judgeSlots = (mostAtOnce: number): Finding => ({
  promised: `at most ${inFlightMax} of them keep the provider busy at once`,
  seen: `${mostAtOnce} at the most`,
  held: mostAtOnce <= inFlightMax,
});

/** Delays each page. @returns a function that reads how many of the attacker's searches had open calls at once, at most. */
function answerSlowly(provider: SerperStub): () => number {
  const openCalls = new Map<unknown, number>();
  let most = 0;
  provider.otherwise = (request, response) => {
    const keyword = request.body["q"];
    setTimeout(tenOrganic, pageMs, request, response);
    if (!String(keyword).startsWith("disconnected")) return;
    openCalls.set(keyword, (openCalls.get(keyword) ?? 0) + 1);
    most = Math.max(most, openCalls.size);
    // An aborted call may still be billed, so it counts until the provider would have answered it.
    setTimeout(() => {
      const left = (openCalls.get(keyword) ?? 1) - 1;
      if (left > 0) openCalls.set(keyword, left);
      else openCalls.delete(keyword);
    }, pageMs);
  };
  return () => most;
}
