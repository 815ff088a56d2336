import type { Answer } from "../processes/service.ts";
import { Connection } from "./connection.ts";
import { type PartialResponse, responsesIn } from "./responses.ts";

const waitMsMax = 15_000;

/** The server's answers on one connection. */
export interface Exchange {
  /** The final answers in order of arrival, without 1xx answers. */
  answers: Answer[];
  /** Whether the server closed the connection. */
  closed: boolean;
  tookMs: number;
}

export interface Sending {
  /** Sent after the rest, byte by byte, while the connection accepts it. */
  drip?: { bytes: string; everyMs: number };
  /** How many answers to wait for if the server keeps the connection open. */
  answers?: number;
  /** Runs after the bytes were sent; the bytes that it returns are sent next. */
  afterwards?: () => Promise<string>;
  /** Whether the sender says that nothing more comes, and still reads. */
  isHalfClosed?: boolean;
}

/** A request as it is sent, with the length of its body if it has one. @param start its method and target. */
export function requestText(start: string, headers: Record<string, string>, body = ""): string {
  const all = { host: "localhost", ...(body !== "" && { "content-length": Buffer.byteLength(body) }), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${start} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

/**
 * Sends bytes unchanged, even if they are not valid HTTP, and reads until the server closes or has sent all answers. A string
 * is sent as Latin-1, so that "\xff" is one byte.
 */
export async function sendRaw(url: string, bytes: string | Buffer, sending: Sending = {}): Promise<Exchange> {
  const startedAtMs = performance.now();
  const connection = await Connection.open(url);
  const dripping = sending.drip && startDripping(connection, sending.drip);
  try {
    connection.send(toBytes(bytes));
    if (sending.afterwards) connection.send(toBytes(await sending.afterwards()));
    if (sending.isHalfClosed) connection.finish();
    const answers = () => responsesIn(connection.received).filter(({ isWhole }) => isWhole);
    // A server that does not read the whole request resets the connection after its answer.
    const areAllThere = () => {
      const willClose = answers().at(-1)?.headers.get("connection") === "close";
      return answers().length >= (sending.answers ?? 1) && !willClose;
    };
    await connection.readUntil(areAllThere, waitMsMax);
    const closed = connection.isClosed;
    if (!closed && !areAllThere())
      throw new Error(`no complete answer in time, but: ${connection.received.toString("latin1")}`);
    return { answers: answers().map(toAnswer), closed, tookMs: performance.now() - startedAtMs };
  } finally {
    clearInterval(dripping);
    connection.reset();
  }
}

function toBytes(bytes: string | Buffer): Buffer {
  return typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
}

function startDripping(connection: Connection, { bytes, everyMs }: { bytes: string; everyMs: number }): NodeJS.Timeout {
  let sent = 0;
  return setInterval(() => {
    connection.send(toBytes(bytes.charAt(sent % bytes.length)));
    sent += 1;
  }, everyMs);
}

function toAnswer({ status, headers, body: text }: PartialResponse): Answer {
  const isJson = headers.get("content-type")?.includes("json");
  const requestId = headers.get("x-request-id") ?? "";
  return { status, headers, requestId, text, body: isJson ? JSON.parse(text) : undefined };
}
