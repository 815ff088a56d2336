import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "./connection.ts";
import type { Load, LoadResult } from "./load.ts";
import { Recorder } from "./recorder.ts";
import { markOf, requestsOf, type SentRequest } from "./requests.ts";
import { type Ask, Schedule } from "./schedule.ts";

const quotedBytesMax = 300;
const refusedStatus = 503;

/** Sends a load and measures the answers. It ends early after an answer that fails. */
export async function generate(load: Load): Promise<LoadResult> {
  const connections = Array.from({ length: load.connections }, (_, at) => new Connection(urlAt(load, at)));
  const recorder = new Recorder(load);
  const next = requestsOf(load);
  const ask = askWith(load, recorder);
  const { ratePerSecond, leadSeconds = 0 } = load;
  const seconds = leadSeconds + load.seconds;
  try {
    if (ratePerSecond === undefined)
      await sendInTurn({ seconds, spreadSeconds: leadSeconds / 2, connections, recorder, next, ask });
    else await new Schedule({ ratePerSecond, seconds, connections, recorder, next, ask }).run();
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
  /** Connections begin evenly over this time. */
  spreadSeconds: number;
  connections: readonly Connection[];
  recorder: Recorder;
  next: () => SentRequest;
  ask: Ask;
}

/** Each connection sends its next request when it has the answer to the last. */
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
