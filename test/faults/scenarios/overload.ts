import type { Row } from "../report.ts";
import { arriveAt, keepInFlight, type CallerAnswer } from "./callers.ts";
import { withStack, quantile, type Scenario, type ScenarioStack, type ScenarioServers, tally } from "./scenario.ts";

/**
 * Five times as many searches as can be answered. What bounds the service here is the provider, not this machine: so
 * many at once, each taking so long.
 */

const workers = 2;
const apis = 2;
const providerMs = 100;
const timesPeak = 5;
const goodputShareMin = 0.9;
const refusedMsMax = 50;

export interface OverloadSize {
  atOncePerWorker: number;
  peakMs: number;
  overloadMs: number;
  /** From the arrival of a search to its last possible answer: half of it is what the queue may hold. */
  deadlineMs: number;
}

export interface OverloadFigures {
  /** Answered searches a second, at a load just above what can be answered. */
  peakPerSecond: number;
  arrivedPerSecond: number;
  goodPerSecond: number;
  answers: CallerAnswer[];
  moneyExact: boolean;
}

export const overload: Scenario = {
  name: "overload",
  run: async (surroundings) =>
    rowsOf(
      await measureOverload(surroundings, {
        atOncePerWorker: 8,
        peakMs: 10_000,
        overloadMs: 25_000,
        deadlineMs: 3_000,
      }),
    ),
};

export async function measureOverload(surroundings: ScenarioServers, size: OverloadSize): Promise<OverloadFigures> {
  const environment = { WORKER_CONCURRENCY: String(size.atOncePerWorker), SEARCH_DEADLINE_MS: String(size.deadlineMs) };
  return withStack(surroundings, { apis, workers, providerMs, environment }, async (scene) => {
    const { service, say } = scene;
    const terms = { windowLimit: 10_000_000, concurrency: 100_000 };
    const { organizationId, token } = await service.organization({ creditMils: 100_000_000, terms });

    const places = workers * size.atOncePerWorker;
    const atPeak = await peak(scene, token, places, size.peakMs);
    const peakPerSecond = goodputOf(atPeak, size.peakMs);
    say(`overload: ${peakPerSecond.toFixed(0)} a second are answered at the peak`);

    const answers: CallerAnswer[] = [];
    // What the provider alone would allow: a little above any peak.
    const perSecondMax = (places / providerMs) * 1_000;
    await arriveAt(perSecondMax * timesPeak, size.overloadMs, async (count) => {
      answers.push(await scene.callers.search(apiOf(scene, count), token, `overload ${count}`));
    });
    say(`overload: ${answers.length} searches, ${tally(answers.map(({ status }) => status))}`);

    await service.rest();
    const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
    const reversals = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "reversal");
    const answered = [...atPeak, ...answers].filter(({ status }) => status === 200).length;
    const verdict = await service.verify();
    return {
      peakPerSecond,
      arrivedPerSecond: answers.length / (size.overloadMs / 1_000),
      goodPerSecond: goodputOf(answers, size.overloadMs),
      answers,
      moneyExact: charges.length - reversals.length === answered && verdict.ok,
    };
  });
}

/** A load just above what can be answered, by callers who each wait for their answer. */
async function peak(scene: ScenarioStack, token: string, places: number, forMs: number): Promise<CallerAnswer[]> {
  const answers: CallerAnswer[] = [];
  const endAtMs = performance.now() + forMs;
  let begun = 0;
  // As many more in flight as there are places, so that no place is ever without work and the queue stays short.
  await keepInFlight(2 * places, async (place) => {
    begun += 1;
    answers.push(await scene.callers.search(apiOf(scene, place), token, `peak ${begun}`));
    return performance.now() < endAtMs;
  });
  return answers;
}

const apiOf = ({ service }: ScenarioStack, count: number) => service.apis[count % service.apis.length]?.url ?? "";

/** Searches answered with 200 while the load lasted, per second. */
function goodputOf(answers: readonly CallerAnswer[], forMs: number): number {
  const endAtMs = Math.min(...answers.map(({ beganAtMs }) => beganAtMs)) + forMs;
  const inTime = answers.filter(({ status, beganAtMs, ms }) => status === 200 && beganAtMs + ms < endAtMs);
  return inTime.length / (forMs / 1_000);
}

/** Everything that is not an answer, and not the one refusal that is promised: 503 with the time to come back. */
export const wrongAnswers = (answers: readonly CallerAnswer[]) =>
  answers.filter(({ status, retryAfter }) => status !== 200 && !(status === 503 && Number(retryAfter) >= 1));

function rowsOf({ peakPerSecond, arrivedPerSecond, goodPerSecond, answers, moneyExact }: OverloadFigures): Row[] {
  const what = `${arrivedPerSecond.toFixed(0)} searches a second, ${(arrivedPerSecond / peakPerSecond).toFixed(1)} times what can be answered`;
  const refused = answers.filter(({ status }) => status === 503).map(({ ms }) => ms);
  const p99Ms = quantile(refused, 0.99);
  const answered = answers.filter(({ status }) => status === 200).map(({ ms }) => ms);
  const wrong = wrongAnswers(answers);
  return [
    {
      what,
      promised: `at least ${goodputShareMin * 100} % of the peak is answered`,
      seen: `${goodPerSecond.toFixed(0)} of ${peakPerSecond.toFixed(0)} a second, after ${quantile(answered, 0.5).toFixed(0)} ms (median)`,
      held: goodPerSecond >= goodputShareMin * peakPerSecond,
    },
    {
      what,
      promised: "everybody else gets 503 with Retry-After",
      seen: `${refused.length} refused; else: ${tally(wrong.map(({ status }) => status))}`,
      held: wrong.length === 0 && refused.length > 0,
    },
    {
      what,
      promised: `99 of 100 refusals within ${refusedMsMax} ms`,
      seen: `${p99Ms.toFixed(1)} ms (median ${quantile(refused, 0.5).toFixed(1)} ms)`,
      held: refused.length > 0 && p99Ms <= refusedMsMax,
    },
    { what, promised: "each answer charged once, nothing else", seen: moneyExact ? "so" : "not so", held: moneyExact },
  ];
}
