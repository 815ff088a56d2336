import { setTimeout as sleep } from "node:timers/promises";
import type { Api, Worker } from "../../harness/processes/service.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import type { Row } from "../report.ts";
import { keepInFlight, type CallerAnswer } from "./callers.ts";
import { withStack, quantile, type Scenario, type ScenarioStack, type ScenarioServers, tally } from "./scenario.ts";

/** Every process is replaced while searches go on, one after the other: the new one first, then SIGTERM for the old. */

const providerMs = 30;
const probeEveryMs = 500;
const probeMsMax = 1_000;
const readyMsMax = 30_000;

export interface RollingRestartSize {
  /** At least; searches go on until the last process is replaced. */
  searches: number;
  inFlight: number;
  /** How often each of the four processes is replaced. */
  rounds: number;
}

export interface RollingRestartFigures {
  size: RollingRestartSize;
  answers: CallerAnswer[];
  replaced: number;
  /** Exit codes of those that were stopped, where not 0. */
  badExits: (number | null)[];
  chargedTooOften: number;
  verified: boolean;
}

export const rollingRestart: Scenario = {
  name: "rolling-restart",
  run: async (surroundings) =>
    rowsOf(await measureRollingRestart(surroundings, { searches: 20_000, inFlight: 32, rounds: 6 })),
};

export async function measureRollingRestart(
  surroundings: ScenarioServers,
  size: RollingRestartSize,
): Promise<RollingRestartFigures> {
  return withStack(surroundings, { apis: 2, workers: 2, providerMs }, async (scene) => {
    const { service, callers, say } = scene;
    const terms = { windowLimit: 10_000_000, concurrency: 1_000 };
    const { organizationId, token } = await service.organization({ creditMils: 100_000_000, terms });
    const balancer = new Balancer(service.apis);
    await eventually(async () => balancer.ready === 2);
    const answers: CallerAnswer[] = [];
    let begun = 0;
    let rolled = false;
    const load = keepInFlight(size.inFlight, async () => {
      begun += 1;
      answers.push(await callers.search(balancer.next(), token, `rolling ${begun}`));
      return !(rolled && answers.length >= size.searches);
    });
    try {
      const codes: (number | null)[] = [];
      for (let round = 1; round <= size.rounds; round += 1) {
        codes.push(...(await replaceAll(scene, balancer)));
        say(`rolling restart ${round}: ${answers.length} searches, ${tally(answers.map(({ status }) => status))}`);
      }
      rolled = true;
      await load;
      await service.rest();
      const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
      return {
        size,
        answers,
        replaced: codes.length,
        badExits: codes.filter((code) => code !== 0),
        chargedTooOften: charges - answers.filter(({ status }) => status === 200).length,
        verified: (await service.verify()).ok,
      };
    } finally {
      rolled = true;
      await balancer.stop();
    }
  });
}

/** Replaces each API and each worker by a new one. @returns the exit codes of the old ones. */
async function replaceAll({ service }: ScenarioStack, balancer: Balancer): Promise<(number | null)[]> {
  const codes: (number | null)[] = [];
  const living = <Process extends Api | Worker>(all: readonly Process[]) =>
    all.filter(({ child }) => child.exitCode === null && child.signalCode === null);
  for (const old of living(service.apis)) {
    const api = await service.startApi();
    await eventually(async () => balancer.sendsTo(api), readyMsMax);
    codes.push(await old.stop());
  }
  for (const old of living(service.workers)) {
    await service.startWorker();
    codes.push(await old.stop());
  }
  return codes;
}

/** Sends to those that said lately that they are ready, in turn, as a load balancer does that asks now and then. */
class Balancer {
  readonly #apis: readonly Api[];
  #ready: Api[] = [];
  #turn = 0;
  readonly #stop = new AbortController();
  readonly #probing: Promise<void>;

  /** @param apis may grow. */
  constructor(apis: readonly Api[]) {
    this.#apis = apis;
    this.#probing = this.#probe();
  }

  get ready(): number {
    return this.#ready.length;
  }

  sendsTo(api: Api): boolean {
    return this.#ready.includes(api);
  }

  next(): string {
    this.#turn += 1;
    return this.#ready[this.#turn % this.#ready.length]?.url ?? "";
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#probing;
  }

  async #probe(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const asked = [...this.#apis];
      const answers = await Promise.all(asked.map(isReady));
      this.#ready = asked.filter((_, place) => answers[place]);
      await sleep(probeEveryMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    }
  }
}

async function isReady({ opsUrl }: Api): Promise<boolean> {
  try {
    return (await fetch(`${opsUrl}/readyz`, { signal: AbortSignal.timeout(probeMsMax) })).ok;
  } catch {
    return false;
  }
}

function rowsOf(figures: RollingRestartFigures): Row[] {
  const { size, answers, replaced, badExits, chargedTooOften, verified } = figures;
  const what = `${answers.length} searches, ${size.inFlight} in flight, while APIs and workers are replaced ${replaced} times`;
  const failed = answers.filter(({ status }) => status !== 200);
  const ms = answers.map((answer) => answer.ms);
  return [
    {
      what,
      promised: "none fails",
      seen: `${failed.length} failed (${tally(failed.map(({ status, text }) => `${status} ${text}`)).slice(0, 300)}); after ${quantile(ms, 0.5).toFixed(0)} ms (median), ${Math.max(...ms).toFixed(0)} ms at most`,
      held: failed.length === 0 && answers.length >= size.searches && replaced === 4 * size.rounds,
    },
    {
      what,
      promised: "each process ends by itself with 0, each answer is charged once",
      seen: `${badExits.length} other exits; ${chargedTooOften} charges too many; ledger ${verified ? "verified" : "broken"}`,
      held: badExits.length === 0 && chargedTooOften === 0 && verified,
    },
  ];
}
