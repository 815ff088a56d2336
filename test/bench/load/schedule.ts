import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "./connection.ts";
import type { Recorder } from "./recorder.ts";
import type { SentRequest } from "./requests.ts";

const tickMs = 1;
const drainMsMax = 60_000;

/** Sends a request and records its latency since `sinceMs`. @returns how long a caller that was refused should wait; 0 otherwise. */
export type Ask = (connection: Connection, request: SentRequest, sinceMs: number) => Promise<number>;

interface Parts {
  ratePerSecond: number;
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
export class Schedule {
  readonly #parts: Parts;
  readonly #free: Connection[];
  readonly #total: number;
  readonly #beganAtMs = performance.now();
  #sent = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#free = [...parts.connections];
    this.#total = Math.round(parts.ratePerSecond * parts.seconds);
  }

  /** Resolves when every request is answered, or one has failed, or a minute after the last was due. */
  async run(): Promise<void> {
    const { recorder, seconds } = this.#parts;
    const giveUpAtMs = this.#beganAtMs + seconds * 1_000 + drainMsMax;
    while (!this.#isOver) {
      if (performance.now() > giveUpAtMs) return recorder.failed(`${this.#total - this.#sent} were never sent`);
      this.#sendDue();
      await sleep(tickMs);
    }
  }

  get #isOver(): boolean {
    const { connections, recorder } = this.#parts;
    return recorder.hasFailed || (this.#sent === this.#total && this.#free.length === connections.length);
  }

  #sendDue(): void {
    const { ratePerSecond, recorder } = this.#parts;
    const dueAtMs = (request: number) => this.#beganAtMs + (request * 1_000) / ratePerSecond;
    const nowMs = performance.now();
    while (this.#sent < this.#total && dueAtMs(this.#sent) <= nowMs && !recorder.hasFailed) {
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
