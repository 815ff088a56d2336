import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { z } from "zod";
import type { PlannedSearch } from "./plan.ts";
import { type Customer, deadlineMs, type Cluster } from "./cluster.ts";

/** One request for a search, and all that its caller knows about what became of it. */
export interface Attempt {
  customer: Customer;
  keyword: string;
  key: string | undefined;
  api: 0 | 1;
  sentAtMs: number;
  endedAtMs: number;
  /** Absent where there was no answer. */
  answer?: { status: number; requestId: string; text: string; replayed: boolean };
  /** Why there was none: the caller hung up, the connection broke, or nothing came within its patience. */
  noAnswer?: "hung up" | "broken" | "silent";
}

const inFlightMax = 64;
const patienceMs = deadlineMs + 6_000;
const retriesMax = 6;
const triedAgain = new Set([429, 500, 502, 503, 504]);

const answerHead = z.object({ requestId: z.string() });

/** Callers as they are: they retry under the same key, submit twice, hang up, and remember every answer. */
export class Callers {
  readonly attempts: Attempt[] = [];
  readonly #world: Cluster;
  readonly #agent = new Agent({ connections: 256, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 2_000 } });

  constructor(world: Cluster) {
    this.#world = world;
  }

  /** Searches as planned, a fixed number in flight, and tells how many are done. */
  async run(searches: readonly PlannedSearch[], onDone: (done: number) => void): Promise<void> {
    let next = 0;
    let done = 0;
    const lane = async () => {
      for (let at = next++; at < searches.length; at = next++) {
        const planned = searches[at];
        if (planned) await this.#search(planned, keywordOf(at));
        onDone((done += 1));
      }
    };
    await Promise.all(Array.from({ length: inFlightMax }, lane));
  }

  async #search(planned: PlannedSearch, keyword: string): Promise<void> {
    const customer = this.#world.customers[planned.organization];
    if (!customer) throw new Error(`there is no organization ${planned.organization}`);
    const { manner, api, copies, hangUpAfterMs } = planned;
    const key = manner === "once" || manner === "hanging_up" ? undefined : randomUUID();
    const ask = (at: 0 | 1) => this.untilAnswered({ customer, keyword, key, api: at });
    switch (manner) {
      case "once":
        await this.send({ customer, keyword, key, api });
        return;
      case "keyed":
        await ask(api);
        return;
      case "doubled":
        await Promise.all(Array.from({ length: copies }, (_, copy) => ask(copy % 2 === 0 ? 0 : 1)));
        return;
      case "hanging_up":
        await this.send({ customer, keyword, key, api }, hangUpAfterMs);
        return;
      case "hanging_up_keyed":
        await this.send({ customer, keyword, key, api }, hangUpAfterMs);
        await ask(api);
    }
  }

  /** Asks again under the same key while that may help, at the other API in turn. @returns the last attempt. */
  async untilAnswered(asked: Pick<Attempt, "customer" | "keyword" | "key" | "api">): Promise<Attempt> {
    for (let retries = 0; ; retries += 1) {
      const api = retries % 2 === 0 ? asked.api : asked.api === 0 ? 1 : 0;
      const attempt = await this.send({ ...asked, api });
      const mayHelp = !attempt.answer || triedAgain.has(attempt.answer.status);
      if (!mayHelp || retries === retriesMax) return attempt;
      await sleep(100 * 2 ** retries * (0.5 + Math.random()));
    }
  }

  /** One request; where it is told when to hang up, it does. Never throws. */
  async send(asked: Pick<Attempt, "customer" | "keyword" | "key" | "api">, hangUpAfterMs?: number): Promise<Attempt> {
    const attempt: Attempt = { ...asked, sentAtMs: performance.now(), endedAtMs: 0 };
    const bound = AbortSignal.timeout(hangUpAfterMs ?? patienceMs);
    try {
      const response = await request(this.#world.addressOf(asked.api, "/v1/serp/search"), {
        dispatcher: this.#agent,
        signal: bound,
        method: "POST",
        headers: {
          authorization: `Bearer ${asked.customer.token}`,
          "content-type": "application/json",
          ...(asked.key !== undefined && { "idempotency-key": asked.key }),
        },
        body: JSON.stringify({ keyword: asked.keyword }),
      });
      const text = await response.body.text();
      const { requestId } = answerHead.parse(JSON.parse(text));
      const replayed = response.headers["idempotency-replayed"] === "true";
      attempt.answer = { status: response.statusCode, requestId, text, replayed };
    } catch (error) {
      if (error instanceof z.ZodError || error instanceof SyntaxError) throw error; // No answer of ours looks like this.
      attempt.noAnswer = !bound.aborted ? "broken" : hangUpAfterMs === undefined ? "silent" : "hung up";
    }
    attempt.endedAtMs = performance.now();
    this.attempts.push(attempt);
    return attempt;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** The keyword of the n-th search, which no other one has: so the provider's log can be told by it. */
export const keywordOf = (at: number) => `search ${at}`;
export const placeOf = (keyword: string) => Number(/\d+$/.exec(keyword)?.[0] ?? -1);
