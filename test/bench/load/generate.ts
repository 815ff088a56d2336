import { Connection } from "./connection.ts";
import type { Load, LoadResult } from "./load.ts";
import { Recorder } from "./recorder.ts";
import { markOf, requestsOf, type SentRequest } from "./requests.ts";
import { Schedule } from "./schedule.ts";

const quotedBytesMax = 300;

/** Sends a load and measures the answers. It ends early after an answer that fails. */
export async function generate(load: Load): Promise<LoadResult> {
  const connections = Array.from({ length: load.connections }, (_, at) => new Connection(urlAt(load, at)));
  const recorder = new Recorder();
  const next = requestsOf(load);
  const ask = askWith(load, recorder);
  const { ratePerSecond, seconds } = load;
  try {
    if (ratePerSecond === undefined) await sendInTurn(seconds, connections, recorder, next, ask);
    else await new Schedule({ ratePerSecond, seconds, connections, recorder, next, ask }).run();
    return recorder.result();
  } finally {
    await Promise.all(connections.map((connection) => connection.close()));
  }
}

const urlAt = ({ urls }: Load, at: number): string => urls[at % urls.length] ?? "";

/** Sends one request and records its latency since `sinceMs`. */
export type Ask = (connection: Connection, request: SentRequest, sinceMs: number) => Promise<void>;

function askWith({ request: kind, status: expected }: Load, recorder: Recorder): Ask {
  const mark = markOf(kind);
  return async (connection, request, sinceMs) => {
    try {
      const { status, body } = await connection.send(request);
      const latencyMs = performance.now() - sinceMs;
      if (status === expected && body.includes(mark)) recorder.answered(latencyMs);
      else recorder.failed(`${status} ${body.subarray(0, quotedBytesMax).toString()}`);
    } catch (error) {
      recorder.failed(String(error));
    }
  };
}

/** Each connection sends its next request when it has the answer to the last. */
async function sendInTurn(
  seconds: number,
  connections: readonly Connection[],
  recorder: Recorder,
  next: () => SentRequest,
  ask: Ask,
): Promise<void> {
  const endsAtMs = performance.now() + seconds * 1_000;
  const send = async (connection: Connection) => {
    while (performance.now() < endsAtMs && !recorder.hasFailed) await ask(connection, next(), performance.now());
  };
  await Promise.all(connections.map(send));
}
