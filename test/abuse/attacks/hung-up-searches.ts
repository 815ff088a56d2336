import { setInterval as ticks } from "node:timers/promises";
import { keepInFlight } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { readBacklog } from "../../harness/assertions/backlog.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { tenOrganic } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../callers/connection.ts";
import { type Credential, searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";

const inFlightMax = 5; // The plan `free`.
const pages = 10;
const pageMs = 300;
const pollMs = 10;
const boundMs = 60_000;
const hangUps: Record<Strength, number> = { quick: 20, full: 50 };
// One of the bound is counted when it is abandoned, while the plan's others are already in flight.
const searchesMax = 2 * inFlightMax - 1;

/** Searches that cost many provider calls, abandoned as soon as the first call was sent. */
export const hungUpSearches: Attack = {
  name: "hung-up-searches",
  tried: `searches of depth ${pages * 10} on the plan free, reset as soon as the provider has been asked`,
  run: async (stack, strength) => {
    const { service, provider } = stack;
    provider.otherwise = (request, response) => setTimeout(tenOrganic, pageMs, request, response);
    const attacker = await service.organization({ plan: "free" });
    const [honest] = await honestOrganizations(stack, 1);
    if (!honest) throw new Error("there is no honest organization");
    const outcomes: string[] = [];
    const running = followRunning(stack, honest);
    const answers = await honestBeside(stack, { organizations: [honest], perSecond: 2 }, () =>
      keepInFlight(inFlightMax, async (caller) => {
        if (outcomes.length >= hangUps[strength]) return false;
        const keyword = `hung up ${caller} ${outcomes.length}`;
        outcomes.push(await hangUp(stack, { url: stack.apiUrl, token: attacker.token }, keyword));
        return true;
      }),
    );
    const mostRunning = await running.stop();
    await service.rest();
    return [...judge(stack, outcomes), judgePlaces(mostRunning), judgeHonest(answers)];
  },
};

/** @returns how the attacker's request ended: `hung up`, or the refusal. */
async function hangUp({ provider }: AttackStack, by: Credential, keyword: string): Promise<string> {
  const connection = await Connection.open(by.url);
  connection.read();
  connection.send(searchBytes(by, { keyword, depth: pages * 10 }));
  const isAsked = () => provider.requests.some(({ body }) => body["q"] === keyword);
  const answered = () => responsesIn(connection.received);
  await becomes(async () => isAsked() || answered().length > 0, boundMs);
  connection.reset();
  const [response] = answered();
  return response ? outcomeOf(response) : "hung up";
}

function judge({ provider }: AttackStack, outcomes: readonly string[]): Finding[] {
  const calls = provider.requests.filter(({ body }) => String(body["q"]).startsWith("hung up"));
  const searches = new Set(calls.map(({ body }) => body["q"])).size;
  return [
    {
      promised: `at most ${searchesMax} abandoned searches reach the provider`,
      seen: `${searches} searches, ${calls.length} provider calls`,
      held: searches <= searchesMax && calls.length <= searchesMax * pages,
    },
    {
      promised: "then 429 with the reason abandoned",
      seen: tally(outcomes),
      held: outcomes.includes("429 abandoned"),
    },
  ];
}

const judgePlaces = (mostRunning: number): Finding => ({
  promised: `at most ${inFlightMax} places at the workers, beside the honest caller's`,
  seen: `${mostRunning} at the most`,
  held: mostRunning <= inFlightMax,
});

/** Follows how many searches the workers run, less what the honest caller has in flight. */
function followRunning({ service }: AttackStack, honest: Organization) {
  let most = 0;
  const over = new AbortController();
  const following = (async () => {
    for await (const _ of ticks(pollMs, undefined, { signal: over.signal })) {
      const [{ running }, { open }] = await Promise.all([
        readBacklog(service.redis),
        service.holdsOf(honest.organizationId),
      ]);
      most = Math.max(most, running - open);
    }
  })().catch(() => undefined);
  return {
    stop: async () => {
      over.abort();
      await following;
      return most;
    },
  };
}
