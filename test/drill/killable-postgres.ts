import type { LocalServer } from "../../local/local-server.ts";
import { startPostgres } from "../../local/postgres.ts";

/** A Postgres that can be killed and started again with its data. */
export class KillablePostgres {
  readonly #first: LocalServer;
  #current: LocalServer;

  private constructor(server: LocalServer) {
    this.#first = server;
    this.#current = server;
  }

  static async start(): Promise<KillablePostgres> {
    return new KillablePostgres(await startPostgres());
  }

  get url(): string {
    return this.#first.url;
  }

  async kill(): Promise<void> {
    this.#current.kill("SIGKILL");
    await this.#current.exited;
  }

  async restart(): Promise<void> {
    const { folder, port } = this.#first;
    this.#current = await startPostgres({ folder, port });
  }

  /** The first one has the folder, and removes it. */
  async stop(): Promise<void> {
    await this.#current.stop();
    await this.#first.stop();
  }
}
