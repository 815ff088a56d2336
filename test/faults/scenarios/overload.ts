import { auditCharges } from "../audit/audit.ts";
import type { Row } from "../report.ts";
import { arriveAt, type CallerAnswer, keepInFlight, outcomeOfAnswer } from "./callers.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { quantile, tally } from "./statistics.ts";

/**
 * Five times as many searches arrive as can be answered. The provider limits the service here, not the machine: each worker runs
 * few searches at once, and each takes as long as the provider.
 */

const providerMs = 100;
const timesPeak = 5;

interface OverloadSize {
  /** Searches that each worker runs at once. */
  concurrency: number;
  peakMs: number;
  overloadMs: number;
  /** The overload ends early once this many callers were refused. */
  refusalsMax: number;
  /** How much of the peak must be answered. */
  goodputShareMin: number;
  /** How long 99 of 100 refusals may take. */
  refusedMsMax: number;
}

export const overload: Scenario = {
  name: "overload",
  run: (servers) => {
    const lasting = { concurrency: 8, peakMs: 10_000, overloadMs: 25_000, refusalsMax: Number.POSITIVE_INFINITY };
    const size = { ...lasting, goodputShareMin: 0.9, refusedMsMax: 50 };
    // The queue may hold searches for half of the deadline.
    const settings = { WORKER_CONCURRENCY: String(size.concurrency), SEARCH_DEADLINE_MS: "3000" };
    return withStack(servers, { apis: 2, workers: 2, settings }, (stack) => measureOverload(stack, size));
  },
};

export async function measureOverload(stack: ScenarioStack, size: OverloadSize): Promise<Row[]> {
  const { service, say } = stack;
  stack.answerAfter(providerMs);
  const terms = { windowLimit: 10_000_000, concurrency: 100_000 };
  const { organizationId, token } = await service.organization({ creditMils: 100_000_000, terms });

  const slots = stack.workers.length * size.concurrency;
  const atPeak = await searchAtPeak(stack, token, slots, size.peakMs);
  const peakPerSecond = goodputOf(atPeak, size.peakMs);
  say(`overload: ${peakPerSecond.toFixed(0)} answered per second at the peak`);

  const answers: CallerAnswer[] = [];
  let refused = 0;
  // What the provider alone would allow, a little more than the peak.
  const perSecondMax = (slots / providerMs) * 1_000;
  const lastedMs = await arriveAt({
    perSecond: perSecondMax * timesPeak,
    forMs: size.overloadMs,
    isEnough: () => refused >= size.refusalsMax,
    call: async (count) => {
      const answer = await stack.callers.search(stack.apiUrl(count), token, `overload ${count}`);
      answers.push(answer);
      if (answer.status === 503) refused += 1;
    },
  });
  say(`overload: ${answers.length} searches, ${tally(answers.map(({ status }) => status))}`);

  await service.rest();
  const answered = [...atPeak, ...answers].filter(({ status }) => status === 200).length;
  const broken = await auditCharges(service, organizationId, answered);
  return rowsOf(size, { peakPerSecond, lastedMs, answers, broken });
}

/** A load just above capacity, by callers that each wait for their answer. */
async function searchAtPeak(
  stack: ScenarioStack,
  token: string,
  slots: number,
  forMs: number,
): Promise<CallerAnswer[]> {
  const answers: CallerAnswer[] = [];
  const endAtMs = performance.now() + forMs;
  let sent = 0;
  // Twice as many as there are slots: no slot is idle, and the queue stays short.
  await keepInFlight(2 * slots, async (caller) => {
    sent += 1;
    answers.push(await stack.callers.search(stack.apiUrl(caller), token, `peak ${sent}`));
    return performance.now() < endAtMs;
  });
  return answers;
}

/** Searches answered with 200 while the load lasted, per second. */
function goodputOf(answers: readonly CallerAnswer[], forMs: number): number {
  const endAtMs = Math.min(...answers.map(({ beganAtMs }) => beganAtMs)) + forMs;
  const inTime = answers.filter(({ status, beganAtMs, ms }) => status === 200 && beganAtMs + ms < endAtMs);
  return inTime.length / (forMs / 1_000);
}

function rowsOf(
  { goodputShareMin, refusedMsMax }: OverloadSize,
  seen: { peakPerSecond: number; lastedMs: number; answers: readonly CallerAnswer[]; broken: readonly string[] },
): Row[] {
  const { peakPerSecond, lastedMs, answers, broken } = seen;
  const arrivedPerSecond = answers.length / (lastedMs / 1_000);
  const goodPerSecond = goodputOf(answers, lastedMs);
  const what = `${arrivedPerSecond.toFixed(0)} searches per second, ${(arrivedPerSecond / peakPerSecond).toFixed(1)} times what can be answered`;
  const refused = answers.filter(({ status }) => status === 503).map(({ ms }) => ms);
  const p99Ms = quantile(refused, 0.99);
  const answered = answers.filter(({ status }) => status === 200).map(({ ms }) => ms);
  const isRefusal = ({ status, retryAfter }: CallerAnswer) => status === 503 && Number(retryAfter) >= 1;
  const wrong = answers.filter((answer) => answer.status !== 200 && !isRefusal(answer));
  return [
    {
      what,
      promised: `at least ${goodputShareMin * 100} % of the peak is answered`,
      seen: `${goodPerSecond.toFixed(0)} of ${peakPerSecond.toFixed(0)} per second, median ${quantile(answered, 0.5).toFixed(0)} ms`,
      held: answered.length > 0 && goodPerSecond >= goodputShareMin * peakPerSecond,
    },
    {
      what,
      promised: "every other search gets 503 with Retry-After",
      seen: `${refused.length} refused; other outcomes: ${tally(wrong.map(outcomeOfAnswer))}`,
      held: wrong.length === 0 && refused.length > 0,
    },
    {
      what,
      promised: `99 of 100 refusals within ${refusedMsMax} ms`,
      seen: `${p99Ms.toFixed(1)} ms (median ${quantile(refused, 0.5).toFixed(1)} ms)`,
      held: refused.length > 0 && p99Ms <= refusedMsMax,
    },
    {
      what,
      promised: "each answer charged once, nothing else",
      seen: broken.join("; ") || "so",
      held: broken.length === 0,
    },
  ];
}
