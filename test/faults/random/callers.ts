import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import type { Attempt } from "../audit/evidence.ts";
import { sendSearch } from "../audit/send-search.ts";
import { callEach } from "../scenarios/callers.ts";
import { type Cluster, deadlineMs, tokenOf } from "./cluster.ts";
import type { Manner, PlannedSearch } from "./plan.ts";
import { type CallerRequest, cancel, newAttempt, pipeline } from "./raw-callers.ts";

const inFlightMax = 64;
const timeoutMs = deadlineMs + 6_000;
const retriesMax = 6;
const retriedStatuses = new Set([429, 500, 502, 503, 504]);

const keyedManners: ReadonlySet<Manner> = new Set(["keyed", "doubled", "hanging_up_keyed"]);

/** Callers that retry under the same key, submit twice, disconnect, cancel and pipeline. They record every attempt. */
export class Callers {
  readonly attempts: Attempt[] = [];
  readonly #cluster: Cluster;
  readonly #agent = new Agent({ connections: 256, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 2_000 } });

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Sends the planned searches, a fixed number in flight, and reports how many are done. */
  async run(searches: readonly PlannedSearch[], onDone: (done: number) => void): Promise<void> {
    let done = 0;
    await callEach(searches.length, inFlightMax, async (at) => {
      const planned = searches[at];
      if (planned) await this.#search(planned, keywordOf(at));
      onDone((done += 1));
    });
  }

  async #search(planned: PlannedSearch, keyword: string): Promise<void> {
    const customer = this.#cluster.customers[planned.organization];
    if (!customer) throw new Error(`there is no organization ${planned.organization}`);
    const { manner, api, fields, copies, disconnectAfterMs } = planned;
    const key = keyedManners.has(manner) ? randomUUID() : undefined;
    const token = tokenOf(customer, planned.token);
    const search = (at: 0 | 1) => this.searchWithRetries({ customer, token, keyword, key, fields, api: at });
    switch (manner) {
      case "once":
        await this.send({ customer, token, keyword, key, fields, api });
        return;
      case "pipelining": {
        const keywords = Array.from({ length: copies }, (_, nth) =>
          nth === 0 ? keyword : `pipelined ${nth}, ${keyword}`,
        );
        const attempts = await pipeline(
          this.#cluster,
          keywords.map((one) => ({ customer, token, api, fields, keyword: one })),
        );
        this.attempts.push(...attempts);
        return;
      }
      case "cancelling":
        this.attempts.push(await cancel(this.#cluster, { customer, token, api, keyword, fields }, disconnectAfterMs));
        return;
      case "keyed":
        await search(api);
        return;
      case "doubled":
        await Promise.all(Array.from({ length: copies }, (_, copy) => search(copy % 2 === 0 ? 0 : 1)));
        return;
      case "hanging_up":
        await this.send({ customer, token, keyword, key, fields, api }, disconnectAfterMs);
        return;
      case "hanging_up_keyed":
        await this.send({ customer, token, keyword, key, fields, api }, disconnectAfterMs);
        await search(api);
    }
  }

  /** Retries under the same key while that may help, at the two APIs in turn. @returns the last attempt. */
  async searchWithRetries(asked: CallerRequest): Promise<Attempt> {
    for (let retries = 0; ; retries += 1) {
      const api = retries % 2 === 0 ? asked.api : asked.api === 0 ? 1 : 0;
      const attempt = await this.send({ ...asked, api });
      const mayHelp = !attempt.answer || retriedStatuses.has(attempt.answer.status);
      if (!mayHelp || retries === retriesMax) return attempt;
      await sleep(100 * 2 ** retries * (0.5 + Math.random()));
    }
  }

  /** Sends one request and disconnects after `disconnectAfterMs`, if given. */
  async send(asked: CallerRequest, disconnectAfterMs?: number): Promise<Attempt> {
    const attempt = newAttempt(asked);
    await sendSearch(attempt, {
      url: this.#cluster.addressOf(asked.api, "/v1/serp/search"),
      token: asked.token.token,
      fields: asked.fields,
      dispatcher: this.#agent,
      signal: AbortSignal.timeout(disconnectAfterMs ?? timeoutMs),
      whenAborted: disconnectAfterMs === undefined ? "silent" : "disconnected",
    });
    this.attempts.push(attempt);
    return attempt;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** The keyword of the n-th search. No other search has it, so it identifies the provider's calls. */
export const keywordOf = (at: number) => `search ${at}`;
export const indexOf = (keyword: string) => Number(/\d+$/.exec(keyword)?.[0] ?? -1);
