import type { SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import { auditCharges } from "../audit/audit.ts";
import type { Row } from "../report.ts";
import type { CallerAnswer } from "./callers.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";
import { quantile, tally } from "./statistics.ts";

/** A worker is killed while it waits for the provider. Another worker is alive. */

const providerMs = 1_000;
export const killedWorkerSettings = { WORKER_CONCURRENCY: "8", SEARCH_DEADLINE_MS: "30000" };
// More than one worker takes at once, so that each worker has some.
const fullSize = { kills: 10, searches: 12, answeredMsMax: 10_000 };

/** How often a worker is killed, with how many searches in flight, and how long after that an answer may take. */
export type KilledWorkerSize = typeof fullSize;

/** One kill and the outcome of the searches in flight. */
interface Kill {
  answers: CallerAnswer[];
  /** Milliseconds from the kill to the answer, for searches that the provider was asked for twice. */
  takenOverMs: number[];
  /** The same for all searches in flight. */
  answeredMs: number[];
}

export const killedWorker: Scenario = {
  name: "killed-worker",
  run: (servers) =>
    withStack(servers, { apis: 1, workers: 2, settings: killedWorkerSettings }, (stack) =>
      measureKilledWorker(stack, fullSize),
    ),
};

export async function measureKilledWorker(stack: ScenarioStack, size: KilledWorkerSize): Promise<Row[]> {
  const { service, say } = stack;
  const { kills, searches } = size;
  stack.answerAfter(providerMs);
  const { organizationId, token } = await service.organization({ creditMils: 1_000_000, terms: {} });
  const seen: Kill[] = [];
  for (let count = 1; count <= kills; count += 1) {
    const victim = stack.workers[count % stack.workers.length];
    if (!victim) throw new Error("the stack has no worker");
    const kill = await killDuringSearches(stack, { token, victim, name: `kill ${count}`, searches });
    seen.push(kill);
    const statuses = tally(kill.answers.map(({ status }) => status));
    say(`killed worker ${count} of ${kills}: ${kill.takenOverMs.length} taken over, ${statuses}`);
    await victim.ready();
  }
  await service.rest();
  const answered = seen.flatMap(({ answers }) => answers).filter(({ status }) => status === 200).length;
  return rowsOf(seen, size, await auditCharges(service, organizationId, answered));
}

async function killDuringSearches(
  stack: ScenarioStack,
  { token, victim, name, searches }: { token: string; victim: SupervisedProcess; name: string; searches: number },
): Promise<Kill> {
  const { service, callers, provider } = stack;
  const before = provider.requests.length;
  const keywords = Array.from({ length: searches }, (_, n) => `${name} ${n}`);
  const running = keywords.map((keyword) => callers.search(stack.apiUrl(0), token, keyword));
  await service.until(async () => provider.requests.length - before === searches);
  const killedAtMs = performance.now();
  victim.kill();

  const answers = await Promise.all(running);
  const asked = provider.requests.slice(before).map(({ body }) => body["q"]);
  const sinceKill = answers.map(({ beganAtMs, ms }) => beganAtMs + ms - killedAtMs);
  const isTakenOver = keywords.map((keyword) => asked.filter((other) => other === keyword).length > 1);
  return { answers, answeredMs: sinceKill, takenOverMs: sinceKill.filter((_, at) => isTakenOver[at]) };
}

function rowsOf(
  seen: readonly Kill[],
  { searches, answeredMsMax }: KilledWorkerSize,
  broken: readonly string[],
): Row[] {
  const answers = seen.flatMap((kill) => kill.answers);
  const takenOverMs = seen.flatMap((kill) => kill.takenOverMs);
  const longestMs = Math.max(...seen.flatMap((kill) => kill.answeredMs));
  const what = `a worker killed ${seen.length} times with ${searches} searches at the provider, another alive`;
  const seconds = (ms: number) => (ms / 1_000).toFixed(1);
  return [
    {
      what,
      promised: `each answered with 200 within ${answeredMsMax / 1_000} s`,
      seen: `${tally(answers.map(({ status }) => status))}; ${takenOverMs.length} taken over, median ${seconds(quantile(takenOverMs, 0.5))} s, longest ${seconds(longestMs)} s`,
      held:
        seen.every((kill) => kill.takenOverMs.length > 0) &&
        answers.every(({ status }) => status === 200) &&
        longestMs <= answeredMsMax,
    },
    { what, promised: "each answer charged once", seen: broken.join("; ") || "so", held: broken.length === 0 },
  ];
}
