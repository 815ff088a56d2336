import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { readBacklog } from "../../harness/assertions/backlog.ts";
import { countCharges } from "../audit/accounts.ts";
import type { Row } from "../report.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { tally } from "./statistics.ts";

/** A hundred callers of several organizations send the same search at once. */

const atOnce = 100;
const payers = 4;
const fullRounds = 20;
const workers = 2;
const slots = 64;
// Each process estimates Redis' clock. An answer that comes right after the enqueueing of a search may seem older than it.
const clockMarginMs = 1_000;

/** So that the searches fill the two workers. */
export const equalSearchesSettings = { WORKER_CONCURRENCY: String(slots / workers) };

export const equalSearches: Scenario = {
  name: "equal-searches",
  run: (servers) =>
    withStack(servers, { apis: 2, workers, settings: equalSearchesSettings }, (stack) =>
      measureEqualSearches(stack, fullRounds),
    ),
};

const answerBody = z.object({ requestId: z.string(), results: z.unknown() });

interface Round {
  statuses: number[];
  /** Distinct request ids, and distinct results. */
  ids: number;
  results: number;
  calls: number;
  /** Of each organization. */
  charges: number[];
}

export async function measureEqualSearches(stack: ScenarioStack, rounds: number): Promise<Row[]> {
  const { service, provider, say } = stack;
  const organizations = await Promise.all(
    Array.from({ length: payers }, () => service.organization({ creditMils: 1_000_000, terms: {} })),
  );
  const tokens = organizations.map(({ token }) => token);
  const charges = () =>
    Promise.all(organizations.map(({ organizationId }) => countCharges(service.database, organizationId)));
  const seen: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const [callsBefore, chargesBefore] = [provider.requests.length, await charges()];
    const answers = await searchAtOnce(stack, tokens, `equal ${round}`);
    await service.rest();
    const calls = provider.requests.length - callsBefore;
    const made = (await charges()).map((count, at) => count - (chargesBefore[at] ?? 0));
    seen.push({ ...answers, calls, charges: made });
  }
  say(`equal searches: ${rounds} rounds of ${atOnce} at once`);
  return [rowOf(seen)];
}

/**
 * A search may not use an answer that came before it was enqueued, and an answer is shared only while other searches wait for
 * it. So the provider answers once all searches are enqueued and both workers are full of them.
 */
async function searchAtOnce(stack: ScenarioStack, tokens: readonly string[], keyword: string) {
  const { service, callers, provider } = stack;
  const release = provider.hold();
  const searches = Array.from({ length: atOnce }, (_, n) =>
    callers.searchUntilDecided(stack.apiUrl(n), tokens[n % payers] ?? "", keyword),
  );
  await service.until(async () => {
    const { waiting, running } = await readBacklog(service.redis);
    return running >= slots && running + waiting === atOnce;
  });
  await sleep(clockMarginMs);
  release();
  const answers = await Promise.all(searches);
  const answered = answers.filter(({ status }) => status === 200);
  const bodies = answered.map(({ text }) => answerBody.parse(JSON.parse(text)));
  return {
    statuses: answers.map(({ status }) => status),
    ids: new Set(bodies.map(({ requestId }) => requestId)).size,
    results: new Set(bodies.map(({ results }) => JSON.stringify(results))).size,
  };
}

function rowOf(seen: readonly Round[]): Row {
  return {
    what: `${atOnce} equal searches at once of ${payers} organizations over 2 APIs and 2 workers, ${seen.length} times`,
    promised: `each: 1 provider call, ${atOnce} answers with the same results, each charged to who asked`,
    seen: `${tally(seen.flatMap(({ statuses }) => statuses))}; provider calls each: ${tally(seen.map(({ calls }) => calls))}; charges of each organization: ${tally(seen.flatMap(({ charges }) => charges))}`,
    held: seen.every(
      ({ statuses, ids, results, calls, charges }) =>
        calls === 1 &&
        results === 1 &&
        ids === atOnce &&
        charges.every((count) => count === atOnce / payers) &&
        statuses.every((status) => status === 200),
    ),
  };
}
