import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const connectMsMax = 60_000;
const largeBytes = 100_000;
const largePauseMs = 100;

/**
 * A caller's connection that does what no well-behaved client does: it takes nothing of what arrives before `read()`,
 * stops in the middle, closes one direction, or resets.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #isClosed = false;
  #changed = Promise.withResolvers<void>();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.pause(); // Before it is connected: later, Node would already have begun to read.
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

  /** Everything that was read so far. */
  get received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get receivedBytes(): number {
    return this.#length;
  }

  /** Whether the server has closed the connection, as far as was read. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends bytes unchanged. A string is sent as UTF-8. */
  send(bytes: string | Buffer): void {
    if (this.#socket.writable) this.#socket.write(bytes);
  }

  /** From now on takes what arrives. */
  read(): void {
    this.#socket.resume();
  }

  holdBack(): void {
    this.#socket.pause();
  }

  /** Reads until so many bytes have arrived in all, then holds back again. @returns whether they did. */
  async readBytes(count: number, boundMs: number): Promise<boolean> {
    const isThere = () => this.#length >= count;
    this.read();
    await this.#until(isThere, boundMs);
    this.holdBack();
    return isThere();
  }

  /** Reads until `isEnough`, the server closes the connection, or nothing has come for `idleMs`. */
  async readUntil(isEnough: () => boolean, idleMs: number): Promise<void> {
    this.read();
    for (let seen = -1; seen !== this.#length && !isEnough() && !this.#isClosed; ) {
      seen = this.#length;
      await this.#until(() => this.#length !== seen, idleMs);
      // To look at megabytes after each chunk would take longer than to read them.
      if (this.#length > largeBytes) await sleep(largePauseMs);
    }
  }

  /** Closes the sending direction only. */
  finish(): void {
    this.#socket.end();
  }

  /** Closes the connection at once, so that what the server still sends fails. */
  reset(): void {
    this.#socket.resetAndDestroy();
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
