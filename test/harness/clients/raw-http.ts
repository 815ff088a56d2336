import { connect, type Socket } from "node:net";
import type { Answer } from "../processes/service.ts";

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

/**
 * Sends bytes unchanged, even if they are not valid HTTP, and reads until the server closes or has sent all answers. A string
 * is sent as Latin-1, so that "\xff" is one byte.
 */
export async function sendRaw(url: string, bytes: string | Buffer, sending: Sending = {}): Promise<Exchange> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const startedAtMs = performance.now();
  const dripping = sending.drip && startDripping(socket, sending.drip);
  try {
    const reading = read(socket, sending.answers ?? 1);
    socket.write(toBytes(bytes));
    if (sending.afterwards) socket.write(toBytes(await sending.afterwards()));
    if (sending.isHalfClosed) socket.end();
    return { ...(await reading), tookMs: performance.now() - startedAtMs };
  } finally {
    clearInterval(dripping);
    socket.destroy();
  }
}

function toBytes(bytes: string | Buffer): Buffer {
  return typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
}

function startDripping(socket: Socket, { bytes, everyMs }: { bytes: string; everyMs: number }): NodeJS.Timeout {
  let sent = 0;
  return setInterval(() => {
    if (socket.writable) socket.write(bytes.charAt(sent % bytes.length), "latin1");
    sent += 1;
  }, everyMs);
}

function read(socket: Socket, answersMax: number): Promise<{ answers: Answer[]; closed: boolean }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const finish = (closed: boolean) => {
      clearTimeout(timer);
      resolve({ answers: readAnswers(Buffer.concat(chunks)), closed });
    };
    const timer = setTimeout(
      () => reject(new Error(`no complete answer in time, but: ${Buffer.concat(chunks).toString("latin1")}`)),
      waitMsMax,
    );
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      const answers = readAnswers(Buffer.concat(chunks));
      const willClose = answers.at(-1)?.headers.get("connection") === "close";
      if (answers.length >= answersMax && !willClose) finish(false);
    });
    socket.on("end", () => finish(true));
    // A server that does not read the whole request resets the connection after its answer.
    socket.on("error", () => finish(true));
  });
}

function readAnswers(received: Buffer): Answer[] {
  const answers: Answer[] = [];
  let rest = received;
  for (;;) {
    const headLength = rest.indexOf("\r\n\r\n");
    if (headLength < 0) return answers;
    const [statusLine = "", ...lines] = rest.toString("latin1", 0, headLength).split("\r\n");
    const headers = new Headers(lines.map((line): [string, string] => [before(line, ":"), after(line, ":")]));
    const start = headLength + 4;
    const end = start + Number(headers.get("content-length") ?? 0);
    if (rest.length < end) return answers;
    const text = rest.toString("utf8", start, end);
    const isJson = headers.get("content-type")?.includes("json");
    const status = Number(statusLine.split(" ")[1]);
    if (status >= 200) answers.push({ status, headers, text, body: isJson ? JSON.parse(text) : undefined });
    rest = rest.subarray(end);
  }
}

const before = (line: string, mark: string) => line.slice(0, line.indexOf(mark));
const after = (line: string, mark: string) => line.slice(line.indexOf(mark) + 1).trim();
