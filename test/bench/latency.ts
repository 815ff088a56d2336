import type { CaseLoad, Contestant } from "./contestants/contestant.ts";
import { openPostgres } from "./contestants/durable-servers.ts";
import { openSerpmill } from "./contestants/serpmill.ts";
import { openYardstick } from "./contestants/yardstick.ts";
import { leadSecondsFor, measureRound } from "./measure-round.ts";
import { describeRound } from "./report.ts";
import { type Measured, median } from "./results.ts";
import type { LoadOptions, Run } from "./run.ts";

/** The rates at which latency is measured, as shares of the peak. */
const shares = [0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1];

/** How many connections are used to measure the peak, and at fixed rates. */
interface Connections {
  atPeak: number;
  atRate: number;
}
// At fixed rates far more than are busy below the peak, so that requests wait in the service instead of before it.
const withoutProvider: Connections = { atPeak: 64, atRate: 256 };
// Each search occupies its connection for as long as the provider takes.
const withProvider: Connections = { atPeak: 1_000, atRate: 2_000 };
const warmUpSeconds = 3;
const warmUpsMax = 5;

export interface LatencyOptions extends LoadOptions {
  /** The delay of a provider over HTTP. Without it, workers generate answers. */
  providerMs?: number;
}

/**
 * Measures the peak, with connections that each wait for their answer. Then measures the latency at fixed arrival rates, from a
 * tenth of the peak to beyond it. Latency counts from the moment a request was due.
 */
export async function measureLatency(run: Run, options: LatencyOptions): Promise<Measured[]> {
  const { generator, shutdown } = run;
  const postgres = await openPostgres(shutdown);
  const { providerMs } = options;
  const stage = { apis: 1, workers: 1, ...(providerMs !== undefined && { providerMs }) };
  const contestants: Contestant[] = [await openSerpmill({ stage, postgres, generator, shutdown })];
  if (options.yardstick !== undefined) contestants.push(await openYardstick(options.yardstick, generator, shutdown));
  for (const contestant of contestants) await warmUp(run, options, contestant);
  const atPeak = contestants.map((contestant): Point => ({ case: "peak", contestant }));
  const peaks = await measureInTurns(run, options, atPeak);
  const measured = [...peaks];
  for (const shareOfPeak of shares) {
    const points = contestants.map((contestant, at): Point => {
      const perSecond = median((peaks[at]?.rounds ?? []).map((round) => round.searchesPerSecond)) ?? 0;
      const ratePerSecond = Math.max(1, Math.round(perSecond * shareOfPeak));
      return { case: "latency", contestant, shareOfPeak, ratePerSecond };
    });
    measured.push(...(await measureInTurns(run, options, points)));
  }
  return measured;
}

/** Sends the load of the peak until the service refuses no caller: with a slow provider it first discovers its concurrency. */
async function warmUp(run: Run, options: LatencyOptions, contestant: Contestant): Promise<void> {
  for (let left = warmUpsMax; left > 0; left -= 1) {
    const figures = await measureRound(contestant, loadOf({ ...options, seconds: warmUpSeconds }));
    run.say(`warm-up, ${contestant.name}: ${describeRound(figures)}`);
    if (!figures.refusedPerSecond) return;
  }
}

/** One measurement of a contestant: the peak, or the latency at a fixed rate. */
interface Point extends Pick<Measured, "case" | "ratePerSecond" | "shareOfPeak"> {
  contestant: Contestant;
}

async function measureInTurns(run: Run, options: LatencyOptions, points: readonly Point[]): Promise<Measured[]> {
  const { providerMs } = options;
  const measured = points.map(({ contestant, ...point }): Measured => {
    return { ...point, contestant: contestant.name, ...(providerMs !== undefined && { providerMs }), rounds: [] };
  });
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const [at, { contestant, shareOfPeak, ratePerSecond }] of points.entries()) {
      const figures = await measureRound(contestant, loadOf(options, ratePerSecond));
      measured[at]?.rounds.push(figures);
      const step = shareOfPeak === undefined ? "peak" : `${Math.round(shareOfPeak * 100)} % of the peak`;
      run.say(`${step}, round ${round}, ${contestant.name}: ${describeRound(figures)}`);
    }
  }
  return measured;
}

function loadOf({ providerMs, seconds }: LatencyOptions, ratePerSecond?: number): CaseLoad {
  const { atPeak, atRate } = providerMs === undefined ? withoutProvider : withProvider;
  return {
    request: "search",
    callers: "hundred",
    status: 200,
    mayRefuse: true,
    seconds,
    ...(providerMs !== undefined && { leadSeconds: leadSecondsFor(providerMs) }),
    ...(ratePerSecond === undefined ? { connections: atPeak } : { connections: atRate, ratePerSecond }),
  };
}
