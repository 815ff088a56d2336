import { delayed, hang, refusal, reply, type SerperStub, startSerperStub } from "../../harness/stubs/serper-stub.ts";
import { contractCases } from "../../worker/providers/contract-cases.ts";
import type { Row } from "../report.ts";
import { callEach, type CallerAnswer } from "./callers.ts";
import { type Scenario, type ScenarioServers, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { quantile, tally } from "./statistics.ts";

/** The preferred one of two providers fails under load, in every way that it can. */

const providerMs = 50;
const fullSearches = 3_000;
const inFlight = 16;

/** What callers saw while the preferred provider was in one state. */
interface Phase {
  state: string;
  answers: CallerAnswer[];
  callsToPreferred: number;
}

export const deadProvider: Scenario = {
  name: "dead-provider",
  run: async (servers) => {
    const unhedged = await measureDeadProvider(servers, { searches: fullSearches });
    const hedging = { searches: fullSearches, hedgeAfterMs: 250 };
    return [...unhedged, ...(await measureDeadProvider(servers, hedging))];
  },
};

/** @param options.searches of each state of the preferred provider. */
export async function measureDeadProvider(
  servers: ScenarioServers,
  options: { searches: number; hedgeAfterMs?: number },
): Promise<Row[]> {
  const { searches, hedgeAfterMs } = options;
  const settings = hedgeAfterMs === undefined ? {} : { SERP_HEDGE_AFTER_MS: String(hedgeAfterMs) };
  const second = await startSerperStub();
  second.otherwise = delayed(providerMs, reply(200, contractCases.dataforseo.page));
  const providers = {
    SERP_PROVIDERS: "serper,dataforseo",
    DATAFORSEO_LOGIN: "stub",
    DATAFORSEO_PASSWORD: "stub",
    DATAFORSEO_BASE_URL: second.url,
  };
  try {
    const stackOptions = { apis: 1, workers: 1, settings: { ...providers, ...settings } };
    const phases = await withStack(servers, stackOptions, (stack) => goThroughStates(stack, searches));
    return rowsOf(phases, hedgeAfterMs === undefined ? "" : `, hedged after ${hedgeAfterMs} ms`);
  } finally {
    await second.close();
  }
}

async function goThroughStates(stack: ScenarioStack, searches: number): Promise<Phase[]> {
  const { service, provider } = stack;
  stack.answerAfter(providerMs);
  const terms = { windowLimit: 10_000_000, concurrency: 1_000 };
  const { token } = await service.organization({ creditMils: 100_000_000, terms });
  const answering = provider.otherwise;
  const search = (state: string) => searchIn(stack, { token, state, searches });
  const phases: Phase[] = [await search("answering")];
  provider.otherwise = refusal(500, "Internal server error");
  phases.push(await search("answering 500"));
  await recover(stack, token, answering);
  provider.otherwise = hang;
  phases.push(await search("hanging"));
  await recover(stack, token, answering);
  await provider.close();
  phases.push(await search("not listening"));
  return phases;
}

async function searchIn(
  stack: ScenarioStack,
  { token, state, searches }: { token: string; state: string; searches: number },
): Promise<Phase> {
  const before = stack.provider.requests.length;
  const answers = await callEach(searches, inFlight, (n) =>
    stack.callers.search(stack.apiUrl(0), token, `${state} ${n}`),
  );
  stack.say(`preferred provider ${state}: ${tally(answers.map(({ status }) => status))}`);
  return { state, answers, callsToPreferred: stack.provider.requests.length - before };
}

/** Searches until the preferred provider is called again, because its circuit half-opens from time to time. */
async function recover(stack: ScenarioStack, token: string, answering: SerperStub["otherwise"]): Promise<void> {
  const { service, callers, provider } = stack;
  provider.otherwise = answering;
  let tries = 0;
  await service.until(async () => {
    const before = provider.requests.length;
    tries += 1;
    await callers.search(stack.apiUrl(0), token, `recover ${before} ${tries}`);
    return provider.requests.length > before;
  });
}

function rowsOf([usual, ...failing]: readonly Phase[], remark: string): Row[] {
  const timesOf = (phase: Phase | undefined) => phase?.answers.map(({ ms }) => ms) ?? [];
  const usualMs = quantile(timesOf(usual), 0.99);
  return failing.map((phase) => {
    const p99Ms = quantile(timesOf(phase), 0.99);
    const statuses = tally(phase.answers.map(({ status }) => status));
    const longestMs = Math.max(...timesOf(phase));
    return {
      what: `the preferred of two providers ${phase.state}${remark}, ${phase.answers.length} searches`,
      promised: "no search fails",
      seen: `${statuses}; p99 ${p99Ms.toFixed(0)} ms, ${usualMs.toFixed(0)} ms while it answered; longest ${longestMs.toFixed(0)} ms; ${phase.callsToPreferred} calls to it`,
      held: phase.answers.every(({ status }) => status === 200),
    };
  });
}
