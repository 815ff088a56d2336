import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type PartialResponse, responsesIn } from "./responses.ts";

const connectMsMax = 60_000;
// Far more than a busy machine needs.
const readMsMax = 120_000;
const largeBytes = 100_000;
const largePauseMs = 100;

/**
 * A connection that reads only when told to, stops in the middle, closes one direction, or resets. Until it reads, the server's
 * bytes stay in the buffers of the two ends.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #isClosed = false;
  #changed = Promise.withResolvers<void>();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.pause(); // Before it is connected; Node begins to read then.
    socket.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      this.#notify();
    });
    socket.on("error", () => undefined); // The close event follows.
    socket.once("end", () => this.#close());
    socket.once("close", () => this.#close());
  }

  static async open(url: string): Promise<Connection> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
    const connection = new Connection(socket);
    await once(socket, "connect", { signal: AbortSignal.timeout(connectMsMax) });
    return connection;
  }

  /** All bytes read so far. */
  get received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get receivedBytes(): number {
    return this.#length;
  }

  /** Whether the end of the connection was read. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends bytes unchanged. A string is sent as UTF-8. */
  send(bytes: string | Buffer): void {
    if (this.#socket.writable) this.#socket.write(bytes);
  }

  /** Starts reading. */
  read(): void {
    this.#socket.resume();
  }

  /** Stops reading. */
  holdBack(): void {
    this.#socket.pause();
  }

  /** Reads until this many bytes have arrived in total, then stops reading. @returns whether they have. */
  readBytes(count: number, boundMs = readMsMax): Promise<boolean> {
    return this.#readWhile(() => this.#length < count, boundMs);
  }

  /** Reads until the text arrives from now on, and stops with the chunk in which it ends. @returns whether it has arrived. */
  readText(text: string): Promise<boolean> {
    let next = this.#chunks.length;
    let recent = "";
    return this.#readWhile(() => {
      for (; next < this.#chunks.length && !recent.includes(text); next += 1)
        recent = recent.slice(-text.length) + String(this.#chunks[next]?.toString("latin1"));
      return !recent.includes(text);
    }, readMsMax);
  }

  /** Reads until `isEnough`, until the server closes the connection, or until nothing has arrived for `idleMs`. */
  async readUntil(isEnough: () => boolean, idleMs: number): Promise<void> {
    this.read();
    for (let seen = -1; seen !== this.#length && !isEnough() && !this.#isClosed; ) {
      seen = this.#length;
      await this.#until(() => this.#length !== seen, idleMs);
      // Checking megabytes after each chunk would take longer than reading them.
      if (this.#length > largeBytes) await sleep(largePauseMs);
    }
  }

  /** Closes the sending direction only. */
  finish(): void {
    this.#socket.end();
  }

  /** Resets the connection, so that whatever the server still sends fails. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  async #readWhile(goesOn: () => boolean, boundMs: number): Promise<boolean> {
    this.read();
    await this.#until(() => !goesOn(), boundMs);
    this.holdBack();
    return !goesOn();
  }

  /** Resolves when `isTrue`, when the connection is closed, or after `boundMs`. */
  async #until(isTrue: () => boolean, boundMs: number): Promise<void> {
    const isOver = new AbortController();
    const bound = sleep(boundMs, "over" as const, { signal: isOver.signal, ref: false }).catch(() => "over" as const);
    while (!isTrue() && !this.#isClosed) {
      if ((await Promise.race([this.#changed.promise, bound])) === "over") break;
    }
    isOver.abort();
  }

  #close(): void {
    this.#isClosed = true;
    this.#notify();
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/**
 * Sends requests on one new connection, all before the first answer. @returns the whole answers that came within `idleMs` each.
 */
export async function exchange(url: string, requests: readonly string[], idleMs = 60_000): Promise<PartialResponse[]> {
  const connection = await Connection.open(url);
  connection.send(requests.join(""));
  const whole = () => responsesIn(connection.received).filter(({ isWhole }) => isWhole);
  await connection.readUntil(() => whole().length >= requests.length, idleMs);
  connection.reset();
  return whole();
}
