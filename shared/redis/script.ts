import { readFileSync } from "node:fs";
import type { ChainableCommander, Redis } from "ioredis";

/** Where a script can run: on a connection, or as one command of a pipeline. */
type Runner = Redis | ChainableCommander;

type Argument = string | number | Buffer;

// Redis 7 or newer. The line must be the first one of a script.
const allowOutOfMemory = "#!lua flags=allow-oom";

/**
 * A Lua script in a file of its own. ioredis' defineCommand sends it in full once and by its digest from then on, and in
 * full again if the server does not know it any more.
 */
export class Script {
  readonly #name: string;
  #lua: string;

  /** @param name the name of the command on connections. @param files the parts of the script's text, in order. */
  constructor(name: string, ...files: URL[]) {
    this.#name = name;
    this.#lua = files.map((file) => readFileSync(file, "utf8")).join("\n");
  }

  /** A script that also runs while Redis is out of memory: one that ends work, and so makes room. */
  static endingWork(name: string, ...files: URL[]): Script {
    const script = new Script(name, ...files);
    script.#lua = `${allowOutOfMemory}\n${script.#lua}`;
    return script;
  }

  define(redis: Redis): void {
    redis.defineCommand(this.#name, { lua: this.#lua });
  }

  /** Runs on a connection that {@link define} was called for. In a pipeline the reply comes with its `exec`. */
  run(on: Runner, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    // defineCommand adds a method under the script's name, which the types of ioredis cannot know.
    const commands = on as unknown as Record<string, ((...all: Argument[]) => Promise<unknown>) | undefined>;
    const command = commands[this.#name];
    if (!command) throw new Error(`the script ${this.#name} was not defined on this connection`);
    return command.call(on, keys.length, ...keys, ...args);
  }
}
