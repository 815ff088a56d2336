import { onTestFinished } from "vitest";
import { openContext } from "../../../shared/process/context.ts";
import { openLog } from "../../../shared/log.ts";
import type { EngineAnswer, GoogleEngine } from "../../../worker/engine/google-engine.ts";
import { type Engine, openSingleFlight } from "../../../worker/engine/single-flight.ts";
import { eventually } from "../assertions/eventually.ts";
import { engineConfig, query } from "../fixtures/queries.ts";

const usualMs = 60_000;
const claim = { organizationId: "one", openSearches: 1 };
const log = openLog({ name: "test", level: "silent" });

/** The single-flight engine of one worker over this engine, with its own Redis connection. It closes with the test. */
export async function openWorkerEngine(
  google: Pick<GoogleEngine, "search">,
  settings: { REDIS_URL: string; [name: string]: string },
) {
  const context = openContext({ config: engineConfig(settings), name: "worker", databaseSizeMax: 1, log });
  onTestFinished(() => context.shutdown.run(log));
  await eventually(async () => context.redis.status === "ready");
  await context.clock.read(context.redis);
  const engine = openSingleFlight(context, google);
  const search = (fields: object = {}, options: Partial<Parameters<Engine["search"]>[0]> = {}) =>
    engine.search({
      query: query(fields),
      claim,
      remainingMs: usualMs,
      enqueuedAtMs: context.clock.nowMs(),
      ...options,
    });
  const metric = async (series: string) => {
    const line = (await context.metrics.registry.metrics()).split("\n").find((each) => each.startsWith(`${series} `));
    return Number(line?.split(" ").at(-1));
  };
  return { ...context, search, metric };
}

const trace = () => ({ provider: "fake", calls: [], costMicroUsd: 1_000 });

/** One result, at a cost of 1000 millionths of a USD. */
export function answerOf(title = "A pump"): EngineAnswer {
  const texts = { title, url: "https://pumps.example/", domain: "pumps.example", breadcrumb: "", description: "" };
  const result = { type: "organic" as const, rank: 1, ...texts, richSnippet: { top: [], bottom: [] }, siteLinks: [] };
  return { ok: true, results: [result], totalResultsCount: 1, trace: trace() };
}

export const refused: EngineAnswer = {
  ok: false,
  code: "engine_error",
  details: { reason: "provider_refused" },
  trace: trace(),
};

export const outOfTime: EngineAnswer = {
  ok: false,
  code: "engine_timeout",
  details: {},
  trace: trace(),
  outOfTime: true,
};

/** An engine for several workers, which answers at once, or holds its searches until the test answers them. */
export class FakeGoogle {
  readonly searches: {
    remainingMs: number;
    answer: (answer: EngineAnswer) => void;
    disconnected: AbortSignal | undefined;
  }[] = [];
  /** Set to undefined to hold further searches. */
  otherwise: EngineAnswer | undefined = answerOf();

  readonly search: GoogleEngine["search"] = (_query, remainingMs, { disconnected } = {}) => {
    const { promise, resolve } = Promise.withResolvers<EngineAnswer>();
    this.searches.push({ remainingMs, answer: resolve, disconnected });
    if (this.otherwise) resolve(this.otherwise);
    return promise;
  };

  /** Waits until this many searches have arrived since the engine was opened. */
  async hasSearches(count: number): Promise<void> {
    await eventually(async () => this.searches.length === count);
  }

  answer(index: number, answer: EngineAnswer): void {
    this.#at(index).answer(answer);
  }

  /** Whether no caller waits for this search any more. */
  isDisconnected(index: number): boolean {
    return this.#at(index).disconnected?.aborted ?? false;
  }

  #at(index: number) {
    const search = this.searches[index];
    if (!search) throw new Error(`There are only ${this.searches.length} searches.`);
    return search;
  }
}
