import { type Dispatcher, Pool } from "undici";

// Longer than any deadline that a scenario sets, so no caller disconnects.
const answerMsMax = 60_000;

/** An answer as a caller saw it. Status 0 is a connection that failed; its text is the reason. */
export interface CallerAnswer {
  status: number;
  text: string;
  /** The header, in seconds. */
  retryAfter: string | undefined;
  replayed: boolean;
  /** By `performance.now()`. */
  beganAtMs: number;
  ms: number;
}

/** Callers that keep their connections. They are light enough to load a service on the same machine. */
export class Callers {
  readonly #pools = new Map<string, Pool>();

  search(apiUrl: string, token: string, query: string | object, key?: string): Promise<CallerAnswer> {
    return this.#send(apiUrl, {
      path: "/v1/serp/search",
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...(key !== undefined && { "idempotency-key": key }),
      },
      body: JSON.stringify(typeof query === "string" ? { keyword: query } : query),
    });
  }

  /** Searches again until the answer is no 503, which a slow machine gives. */
  async searchUntilDecided(...search: Parameters<Callers["search"]>): Promise<CallerAnswer> {
    for (;;) {
      const answer = await this.search(...search);
      if (answer.status !== 503) return answer;
    }
  }

  usage(apiUrl: string, token: string): Promise<CallerAnswer> {
    return this.#send(apiUrl, { path: "/v1/usage", method: "GET", headers: { authorization: `Bearer ${token}` } });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
  }

  async #send(apiUrl: string, request: Dispatcher.RequestOptions): Promise<CallerAnswer> {
    const beganAtMs = performance.now();
    try {
      const { statusCode, headers, body } = await this.#poolOf(apiUrl).request(request);
      const text = await body.text();
      const retryAfter = headers["retry-after"]?.toString();
      const replayed = headers["idempotency-replayed"] === "true";
      return { status: statusCode, text, retryAfter, replayed, beganAtMs, ms: performance.now() - beganAtMs };
    } catch (error) {
      const text = String(error);
      const ms = performance.now() - beganAtMs;
      return { status: 0, text, retryAfter: undefined, replayed: false, beganAtMs, ms };
    }
  }

  #poolOf(apiUrl: string): Pool {
    const known = this.#pools.get(apiUrl);
    if (known) return known;
    const connect = { timeout: answerMsMax };
    const pool = new Pool(apiUrl, { connect, headersTimeout: answerMsMax, bodyTimeout: answerMsMax });
    this.#pools.set(apiUrl, pool);
    return pool;
  }
}

/** The status of an answer, with its reason if it is an error: `429 concurrency`; of a connection that failed, why. */
export function outcomeOfAnswer({ status, text }: CallerAnswer): string {
  if (status === 0) return text;
  const reason = status === 200 ? undefined : /"reason":"(\w+)"/.exec(text)?.[1];
  return reason === undefined ? String(status) : `${status} ${reason}`;
}

/** Makes this many calls, with so many in flight. @returns their results, in the order of the calls. */
export async function callEach<T>(count: number, inFlight: number, call: (n: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let begun = 0;
  await keepInFlight(Math.min(count, inFlight), async () => {
    const n = begun++;
    if (n < count) results[n] = await call(n);
    return begun < count;
  });
  return results;
}

/** Keeps this many calls in flight. Each caller continues until its call returns false. */
export async function keepInFlight(inFlight: number, call: (caller: number) => Promise<boolean>): Promise<void> {
  const goOn = async (caller: number) => {
    while (await call(caller));
  };
  await Promise.all(Array.from({ length: inFlight }, (_, caller) => goOn(caller)));
}

const tickMs = 5;

/**
 * Starts calls at a rate, whether or not earlier ones have been answered, as independent callers do.
 * @returns for how many milliseconds it started calls, once all of them have ended.
 */
export async function arriveAt(options: {
  perSecond: number;
  forMs: number;
  /** Stops starting calls early. */
  isEnough: () => boolean;
  call: (count: number) => Promise<void>;
}): Promise<number> {
  const { perSecond, forMs, isEnough, call } = options;
  const beganAtMs = performance.now();
  const calls: Promise<void>[] = [];
  const lastedMs = await new Promise<number>((resolve) => {
    const ticking = setInterval(() => {
      const passedMs = Math.min(performance.now() - beganAtMs, forMs);
      while (calls.length < (passedMs * perSecond) / 1_000) calls.push(call(calls.length));
      if (passedMs < forMs && !isEnough()) return;
      clearInterval(ticking);
      resolve(passedMs);
    }, tickMs);
  });
  await Promise.all(calls);
  return lastedMs;
}
