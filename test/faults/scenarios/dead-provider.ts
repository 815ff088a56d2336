import { contractCases } from "../../shared/providers/contract-cases.ts";
import { hang, refusal, type Reply, reply, type SerperStub, startSerperStub } from "../../harness/stubs/serper-stub.ts";
import type { Row } from "../report.ts";
import { keepInFlight, type CallerAnswer } from "./callers.ts";
import { withStack, quantile, type Scenario, type ScenarioStack, type ScenarioServers, tally } from "./scenario.ts";

/** Two providers, of which the preferred one is lost at noon, in each of the ways in which one can be lost. */

const providerMs = 50;

export interface DeadProviderSize {
  searches: number;
  inFlight: number;
}

/** What callers saw while the preferred provider was as `how` tells. */
export interface Loss {
  how: string;
  answers: CallerAnswer[];
  /** Calls that reached the preferred provider. */
  callsToPreferred: number;
}

export const deadProvider: Scenario = {
  name: "dead-provider",
  run: async (surroundings) => {
    const size = { searches: 3_000, inFlight: 16 };
    const unhedged = await measureDeadProvider(surroundings, size, {});
    const hedged = await measureDeadProvider(surroundings, size, { SERP_HEDGE_AFTER_MS: "250" });
    return [...rowsOf(unhedged, ""), ...rowsOf(hedged, ", hedged after 250 ms")];
  },
};

export async function measureDeadProvider(
  surroundings: ScenarioServers,
  size: DeadProviderSize,
  settings: Record<string, string>,
): Promise<Loss[]> {
  const second = await startSerperStub();
  second.otherwise = slowly(reply(200, contractCases.dataforseo.page));
  const environment = {
    SERP_PROVIDERS: "serper,dataforseo",
    DATAFORSEO_LOGIN: "stub",
    DATAFORSEO_PASSWORD: "stub",
    DATAFORSEO_BASE_URL: second.url,
    ...settings,
  };
  try {
    return await withStack(surroundings, { apis: 1, workers: 1, providerMs, environment }, (scene) =>
      play(scene, size),
    );
  } finally {
    await second.close();
  }
}

async function play(scene: ScenarioStack, size: DeadProviderSize): Promise<Loss[]> {
  const { service, provider } = scene;
  const terms = { windowLimit: 10_000_000, concurrency: 1_000 };
  const { token } = await service.organization({ creditMils: 100_000_000, terms });
  const well = provider.otherwise;
  const losses: Loss[] = [await search(scene, token, size, "alive")];
  provider.otherwise = refusal(500, "Internal server error");
  losses.push(await search(scene, token, size, "answering 500"));
  await recover(scene, token, well);
  provider.otherwise = hang;
  losses.push(await search(scene, token, size, "hanging"));
  await recover(scene, token, well);
  await provider.close();
  losses.push(await search(scene, token, size, "gone"));
  return losses;
}

async function search(scene: ScenarioStack, token: string, size: DeadProviderSize, how: string): Promise<Loss> {
  const before = scene.provider.requests.length;
  const answers: CallerAnswer[] = [];
  let begun = 0;
  await keepInFlight(size.inFlight, async () => {
    begun += 1;
    answers.push(await scene.callers.search(scene.service.apis[0]?.url ?? "", token, `${how} ${begun}`));
    return begun < size.searches;
  });
  scene.say(`preferred provider ${how}: ${tally(answers.map(({ status }) => status))}`);
  return { how, answers, callsToPreferred: scene.provider.requests.length - before };
}

/** Until the preferred one is asked again: one search in ten seconds tries whether it is well. */
async function recover({ service, callers, provider }: ScenarioStack, token: string, well: SerperStub["otherwise"]) {
  provider.otherwise = well;
  let tries = 0;
  await service.until(async () => {
    const before = provider.requests.length;
    tries += 1;
    await callers.search(service.apis[0]?.url ?? "", token, `recover ${before} ${tries}`);
    return provider.requests.length > before;
  });
}

function slowly(answer: Reply): Reply {
  return (request, response) => setTimeout(answer, providerMs, request, response);
}

function rowsOf([alive, ...losses]: readonly Loss[], remark: string): Row[] {
  const timesOf = (loss: Loss | undefined) => loss?.answers.map(({ ms }) => ms) ?? [];
  const usual = quantile(timesOf(alive), 0.99);
  return losses.map((loss) => {
    const p99 = quantile(timesOf(loss), 0.99);
    const seen = tally(loss.answers.map(({ status }) => status));
    const share = `${loss.callsToPreferred} calls to it`;
    return {
      what: `the preferred of two providers ${loss.how}${remark}, ${loss.answers.length} searches`,
      promised: "none fails",
      seen: `${seen}; p99 ${p99.toFixed(0)} ms, ${usual.toFixed(0)} ms while it lived; at most ${Math.max(...timesOf(loss)).toFixed(0)} ms; ${share}`,
      held: loss.answers.every(({ status }) => status === 200),
    };
  });
}
