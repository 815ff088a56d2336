import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "./connection.ts";
import type { Load, LoadResult } from "./load.ts";
import { Recorder } from "./recorder.ts";
import { markOf, requestsOf, type SentRequest } from "./requests.ts";

const quotedBytesMax = 300;
const refusedStatus = 503;
const tickMs = 1;
const drainMsMax = 60_000;

/**
 * Sends a request and records its latency since `sinceMs`. @returns how long a caller that was refused should wait; 0
 * otherwise.
 */
type Ask = (connection: Connection, request: SentRequest, sinceMs: number) => Promise<number>;

/** Sends a load and measures the answers. It ends early after an answer that fails. */
export async function generate(load: Load): Promise<LoadResult> {
  const connections = Array.from({ length: load.connections }, (_, at) => new Connection(urlAt(load, at)));
  const recorder = new Recorder(load);
  const next = requestsOf(load);
  const ask = askWith(load, recorder);
  const { ratePerSecond, leadSeconds = 0, leadRatePerSecond = ratePerSecond ?? 0 } = load;
  const seconds = leadSeconds + load.seconds;
  try {
    if (ratePerSecond === undefined)
      await sendInTurn({ seconds, spreadSeconds: leadSeconds / 2, connections, recorder, next, ask });
    else {
      const dueAfterMs = dueAfterMsAt({ ratePerSecond, leadSeconds, leadRatePerSecond });
      const total = Math.round(leadRatePerSecond * leadSeconds + ratePerSecond * load.seconds);
      await new Schedule({ dueAfterMs, total, seconds, connections, recorder, next, ask }).run();
    }
    return recorder.result();
  } finally {
    await Promise.all(connections.map((connection) => connection.close()));
  }
}

const urlAt = ({ urls }: Load, at: number): string => urls[at % urls.length] ?? "";

function askWith({ request: kind, status: expected, mayRefuse }: Load, recorder: Recorder): Ask {
  const mark = markOf(kind);
  return async (connection, request, sinceMs) => {
    try {
      const { status, retryAfterMs, body } = await connection.send(request);
      const latencyMs = performance.now() - sinceMs;
      if (status === expected && body.includes(mark)) recorder.answered(latencyMs);
      else if (mayRefuse && status === refusedStatus && retryAfterMs !== undefined) {
        recorder.refused(latencyMs);
        return retryAfterMs;
      } else recorder.failed(`${status} ${body.subarray(0, quotedBytesMax).toString()}`);
    } catch (error) {
      recorder.failed(String(error));
    }
    return 0;
  };
}

interface Turns {
  seconds: number;
  /** Connections start evenly over this time. */
  spreadSeconds: number;
  connections: readonly Connection[];
  recorder: Recorder;
  next: () => SentRequest;
  ask: Ask;
}

/** Each connection sends its next request when it has the answer to the previous one. */
async function sendInTurn({ seconds, spreadSeconds, connections, recorder, next, ask }: Turns): Promise<void> {
  const endsAtMs = performance.now() + seconds * 1_000;
  const send = async (connection: Connection, at: number) => {
    const beginsAfterMs = (spreadSeconds * 1_000 * at) / connections.length;
    if (beginsAfterMs > 0) await sleep(beginsAfterMs);
    while (performance.now() < endsAtMs && !recorder.hasFailed) {
      const pauseMs = await ask(connection, next(), performance.now());
      if (pauseMs > 0) await sleep(pauseMs);
    }
  };
  await Promise.all(connections.map(send));
}

/** When each request of a load is due: at one rate during the lead, and at another one after it. */
const dueAfterMsAt = (rates: Record<"ratePerSecond" | "leadSeconds" | "leadRatePerSecond", number>) => {
  const { ratePerSecond, leadSeconds, leadRatePerSecond } = rates;
  const during = leadSeconds * leadRatePerSecond;
  return (request: number): number =>
    request < during
      ? (request * 1_000) / leadRatePerSecond
      : leadSeconds * 1_000 + ((request - during) * 1_000) / ratePerSecond;
};

interface Parts {
  /** When a request is due, from the start. */
  dueAfterMs: (request: number) => number;
  total: number;
  seconds: number;
  connections: readonly Connection[];
  recorder: Recorder;
  next: () => SentRequest;
  ask: Ask;
}

/**
 * Sends requests that are due at fixed intervals. One that finds no free connection waits, and its latency counts from the moment
 * at which it was due, so that a slow answer does not hide how long the callers after it would have waited.
 */
class Schedule {
  readonly #parts: Parts;
  readonly #free: Connection[];
  readonly #beganAtMs = performance.now();
  #sent = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#free = [...parts.connections];
  }

  /** Resolves when every request is answered, or one has failed, or a minute after the last was due. */
  async run(): Promise<void> {
    const { recorder, seconds } = this.#parts;
    const giveUpAtMs = this.#beganAtMs + seconds * 1_000 + drainMsMax;
    while (!this.#isOver) {
      if (performance.now() > giveUpAtMs) return recorder.failed(`${this.#parts.total - this.#sent} were never sent`);
      this.#sendDue();
      await sleep(tickMs);
    }
  }

  get #isOver(): boolean {
    const { connections, recorder } = this.#parts;
    return recorder.hasFailed || (this.#sent === this.#parts.total && this.#free.length === connections.length);
  }

  #sendDue(): void {
    const { dueAfterMs, total, recorder } = this.#parts;
    const dueAtMs = (request: number) => this.#beganAtMs + dueAfterMs(request);
    const nowMs = performance.now();
    while (this.#sent < total && dueAtMs(this.#sent) <= nowMs && !recorder.hasFailed) {
      const connection = this.#free.pop();
      if (!connection) return;
      recorder.sentLate(nowMs - dueAtMs(this.#sent));
      this.#send(connection, dueAtMs(this.#sent));
      this.#sent += 1;
    }
  }

  #send(connection: Connection, dueAtMs: number): void {
    const { ask, next } = this.#parts;
    void ask(connection, next(), dueAtMs).then(() => {
      this.#free.push(connection);
      this.#sendDue();
    });
  }
}
