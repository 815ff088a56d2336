import type { Worker } from "../../harness/processes/service.ts";
import type { Row } from "../report.ts";
import type { CallerAnswer } from "./callers.ts";
import { withStack, quantile, type Scenario, type ScenarioStack, type ScenarioServers, tally } from "./scenario.ts";

/** A worker is killed while it waits for the provider; another one lives. */

const providerMs = 1_000;
const atOncePerWorker = 8;
// More than one worker has places for, so that both have some, whichever is killed.
const searchesPerKill = 12;
const takenOverMsMax = 10_000;

/** One kill and what became of the searches under way. */
export interface Kill {
  answers: CallerAnswer[];
  /** Milliseconds from the kill to the answer, of the searches that the provider was asked for twice. */
  takenOverMs: number[];
  /** Of all searches under way. */
  answeredMs: number[];
}

export interface KilledWorkerFigures {
  kills: Kill[];
  /** Charges less answers: 0 where each answer was charged once. */
  chargedTooOften: number;
  verified: boolean;
}

export const killedWorker: Scenario = {
  name: "killed-worker",
  run: async (surroundings) => rowsOf(await measureKilledWorker(surroundings, 10)),
};

export async function measureKilledWorker(surroundings: ScenarioServers, times: number): Promise<KilledWorkerFigures> {
  const environment = { WORKER_CONCURRENCY: String(atOncePerWorker), SEARCH_DEADLINE_MS: "30000" };
  return withStack(surroundings, { apis: 1, workers: 2, providerMs, environment }, async (scene) => {
    const { service, say } = scene;
    const { organizationId, token } = await service.organization({ creditMils: 1_000_000, terms: {} });
    const alive = [...service.workers];
    const kills: Kill[] = [];
    for (let count = 1; count <= times; count += 1) {
      const kill = await killDuringSearches(scene, token, alive.shift(), `kill ${count}`);
      kills.push(kill);
      say(
        `killed worker ${count} of ${times}: ${kill.takenOverMs.length} taken over, ${tally(kill.answers.map(({ status }) => status))}`,
      );
      if (count < times) alive.push(await service.startWorker());
    }
    await service.rest();
    const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
    const answered = kills.flatMap(({ answers }) => answers).filter(({ status }) => status === 200).length;
    return { kills, chargedTooOften: charges - answered, verified: (await service.verify()).ok };
  });
}

async function killDuringSearches(
  { service, callers, provider }: ScenarioStack,
  token: string,
  victim: Worker | undefined,
  name: string,
): Promise<Kill> {
  const before = provider.requests.length;
  const keywords = Array.from({ length: searchesPerKill }, (_, n) => `${name} ${n}`);
  const running = keywords.map((keyword) => callers.search(service.apis[0]?.url ?? "", token, keyword));
  await service.until(async () => provider.requests.length - before === searchesPerKill);
  const killedAtMs = performance.now();
  victim?.kill("SIGKILL");

  const answers = await Promise.all(running);
  const asked = provider.requests.slice(before).map(({ body }) => body["q"]);
  const sinceKill = answers.map(({ beganAtMs, ms }) => beganAtMs + ms - killedAtMs);
  const isTakenOver = keywords.map((keyword) => asked.filter((other) => other === keyword).length > 1);
  return { answers, answeredMs: sinceKill, takenOverMs: sinceKill.filter((_, place) => isTakenOver[place]) };
}

function rowsOf({ kills, chargedTooOften, verified }: KilledWorkerFigures): Row[] {
  const answers = kills.flatMap((kill) => kill.answers);
  const takenOverMs = kills.flatMap((kill) => kill.takenOverMs);
  const allMs = kills.flatMap((kill) => kill.answeredMs);
  const what = `a worker killed ${kills.length} times with ${searchesPerKill} searches at the provider, another alive`;
  const seconds = (ms: number) => (ms / 1_000).toFixed(1);
  return [
    {
      what,
      promised: `each answered with 200 within ${takenOverMsMax / 1_000} s`,
      seen: `${tally(answers.map(({ status }) => status))}; ${takenOverMs.length} taken over after ${seconds(quantile(takenOverMs, 0.5))} s (median), ${seconds(Math.max(...allMs))} s at most`,
      held:
        kills.every((kill) => kill.takenOverMs.length > 0) &&
        answers.every(({ status }) => status === 200) &&
        Math.max(...allMs) <= takenOverMsMax,
    },
    {
      what,
      promised: "each answer charged once",
      seen: `${chargedTooOften} charges too many; ledger ${verified ? "verified" : "broken"}`,
      held: chargedTooOften === 0 && verified,
    },
  ];
}
