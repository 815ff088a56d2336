import type { Row } from "../report.ts";
import { withStack, type Scenario, type ScenarioServers, tally } from "./scenario.ts";

/** The same search a hundred times at once, by as many callers, none of whom knows of the others. */

const providerMs = 200;
const atOnce = 100;
const rounds = 20;

export const equalSearches: Scenario = {
  name: "equal-searches",
  run: async (surroundings) => [rowOf(await measureEqualSearches(surroundings))],
};

interface Round {
  statuses: number[];
  calls: number;
  charges: number;
}

async function measureEqualSearches(surroundings: ScenarioServers): Promise<Round[]> {
  return withStack(surroundings, { apis: 2, workers: 2, providerMs }, async ({ service, callers, provider, say }) => {
    const { organizationId, token } = await service.organization({ creditMils: 1_000_000, terms: {} });
    const chargesOf = async () =>
      (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
    const seen: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const [callsBefore, chargesBefore] = [provider.requests.length, await chargesOf()];
      const answers = await Promise.all(
        Array.from({ length: atOnce }, (_, n) =>
          callers.search(service.apis[n % 2]?.url ?? "", token, `equal ${round}`),
        ),
      );
      await service.rest();
      seen.push({
        statuses: answers.map(({ status }) => status),
        calls: provider.requests.length - callsBefore,
        charges: (await chargesOf()) - chargesBefore,
      });
    }
    say(`equal searches: ${rounds} rounds of ${atOnce} at once`);
    return seen;
  });
}

function rowOf(seen: readonly Round[]): Row {
  return {
    what: `${atOnce} equal searches at once over 2 APIs and 2 workers, ${rounds} times`,
    promised: `each: 1 provider call, ${atOnce} charges`,
    seen: `${tally(seen.flatMap(({ statuses }) => statuses))}; provider calls each: ${tally(seen.map(({ calls }) => calls))}; charges each: ${tally(seen.map(({ charges }) => charges))}`,
    held: seen.every(
      ({ statuses, calls, charges }) => calls === 1 && charges === atOnce && statuses.every((status) => status === 200),
    ),
  };
}
