import { setTimeout as sleep } from "node:timers/promises";
import { readBacklog } from "../../harness/assertions/backlog.ts";
import { countCharges } from "../audit/accounts.ts";
import type { Row } from "../report.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { tally } from "./statistics.ts";

/** A hundred callers send the same search at once. */

const atOnce = 100;
const fullRounds = 20;
const workers = 2;
const slots = 64;
// Each process estimates Redis' clock. An answer that comes right after the enqueueing of a search may seem older than it.
const clockMarginMs = 100;

/** So that the searches fill the two workers. */
export const equalSearchesSettings = { WORKER_CONCURRENCY: String(slots / workers) };

export const equalSearches: Scenario = {
  name: "equal-searches",
  run: (servers) =>
    withStack(servers, { apis: 2, workers, settings: equalSearchesSettings }, (stack) =>
      measureEqualSearches(stack, fullRounds),
    ),
};

interface Round {
  statuses: number[];
  calls: number;
  charges: number;
}

export async function measureEqualSearches(stack: ScenarioStack, rounds: number): Promise<Row[]> {
  const { service, provider, say } = stack;
  const { organizationId, token } = await service.organization({ creditMils: 1_000_000, terms: {} });
  const charges = () => countCharges(service.database, organizationId);
  const seen: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const [callsBefore, chargesBefore] = [provider.requests.length, await charges()];
    const statuses = await searchAtOnce(stack, token, `equal ${round}`);
    await service.rest();
    const calls = provider.requests.length - callsBefore;
    seen.push({ statuses, calls, charges: (await charges()) - chargesBefore });
  }
  say(`equal searches: ${rounds} rounds of ${atOnce} at once`);
  return [rowOf(seen)];
}

/**
 * A search may not use an answer that came before it was enqueued, and an answer is shared only while other searches wait for
 * it. So the provider answers once all searches are enqueued and both workers are full of them.
 */
async function searchAtOnce(stack: ScenarioStack, token: string, keyword: string): Promise<number[]> {
  const { service, callers, provider } = stack;
  const release = provider.hold();
  const searches = Array.from({ length: atOnce }, (_, n) => callers.search(stack.apiUrl(n), token, keyword));
  await service.until(async () => {
    const { waiting, running } = await readBacklog(service.redis);
    return running >= slots && running + waiting === atOnce;
  });
  await sleep(clockMarginMs);
  release();
  return (await Promise.all(searches)).map(({ status }) => status);
}

function rowOf(seen: readonly Round[]): Row {
  return {
    what: `${atOnce} equal searches at once over 2 APIs and 2 workers, ${seen.length} times`,
    promised: `each: 1 provider call, ${atOnce} charges`,
    seen: `${tally(seen.flatMap(({ statuses }) => statuses))}; provider calls each: ${tally(seen.map(({ calls }) => calls))}; charges each: ${tally(seen.map(({ charges }) => charges))}`,
    held: seen.every(
      ({ statuses, calls, charges }) => calls === 1 && charges === atOnce && statuses.every((status) => status === 200),
    ),
  };
}
