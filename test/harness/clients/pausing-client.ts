import { connect, type Socket } from "node:net";

/** A client that decides when it reads. Until then the server's bytes stay in the buffers of the two ends. */
export class PausingClient {
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#socket = connect(Number(port), hostname);
    this.#socket.on("error", () => undefined);
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  /** Reads until this many bytes have arrived in all, or the server has closed. @returns how many have arrived. */
  async read(bytes: number): Promise<number> {
    await this.#readWhile(() => this.#length < bytes);
    return this.#length;
  }

  /** Reads until the text arrives, or the server has closed. @returns whether it has arrived. */
  async readUntil(text: string): Promise<boolean> {
    let recent = "";
    await this.#readWhile((chunk) => {
      recent = recent.slice(-text.length) + chunk.toString("latin1");
      return !recent.includes(text);
    });
    return recent.includes(text);
  }

  /** Everything that has arrived. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString("latin1");
  }

  /** Ends the connection at once; the bytes that are under way are lost. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  /** The socket flows meanwhile, so that the server is never held up by this process. */
  async #readWhile(goesOn: (chunk: Buffer) => boolean): Promise<void> {
    if (!goesOn(Buffer.alloc(0)) || this.#socket.destroyed) return;
    await new Promise<void>((resolve) => {
      const stop = () => {
        this.#socket.off("data", onData).off("close", stop).pause();
        resolve();
      };
      const onData = (chunk: Buffer) => {
        this.#chunks.push(chunk);
        this.#length += chunk.length;
        if (!goesOn(chunk)) stop();
      };
      this.#socket.on("data", onData).once("close", stop).resume();
    });
  }
}
