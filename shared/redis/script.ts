import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { z } from "zod";

type Argument = string | number | Buffer;

interface Call {
  keys: readonly string[];
  args: readonly Argument[];
  resolve: (reply: unknown) => void;
  reject: (error: unknown) => void;
}

// Redis runs a command to its end before the next one. These keep it short, and answers out of one another's way.
const callsPerCommandMax = 64;
const bytesPerCommandMax = 1024 * 1024;

// Redis 7 or newer. The line must be the first one of a script.
const allowOutOfMemory = "#!lua flags=allow-oom";

const runCalls = readFileSync(new URL("run-calls.lua", import.meta.url), "utf8");
const repliesOf = z.array(z.unknown());

/** What a connection sends at the end of this turn of the event loop, and what may wait for that. */
interface Sendings {
  leaving: (() => void)[];
  riding: (() => void)[];
  timer?: NodeJS.Timeout | undefined;
}
const sendingsOf = new WeakMap<Redis, Sendings>();

function sendingsTo(redis: Redis): Sendings {
  const known = sendingsOf.get(redis);
  if (known) return known;
  const sendings: Sendings = { leaving: [], riding: [] };
  sendingsOf.set(redis, sendings);
  return sendings;
}

/** Sends after the input of this turn of the event loop, so that calls that came together leave with one write. */
function sendAtEndOfTurn(redis: Redis, send: () => void): void {
  const sendings = sendingsTo(redis);
  sendings.leaving.push(send);
  if (sendings.leaving.length > 1) return;
  setImmediate(() => {
    clearTimeout(sendings.timer);
    sendings.timer = undefined;
    for (const next of [...sendings.leaving.splice(0), ...sendings.riding.splice(0)]) next();
  });
}

/** Sends with what leaves next on this connection, or after so long. */
function sendWithNext(redis: Redis, send: () => void, withinMs: number): void {
  const sendings = sendingsTo(redis);
  sendings.riding.push(send);
  sendings.timer ??= setTimeout(() => {
    sendings.timer = undefined;
    for (const next of sendings.riding.splice(0)) next();
  }, withinMs);
}

/**
 * A Lua script in a file of its own. Calls of it that a process makes in the same turn of the event loop share one command,
 * in which run-calls.lua runs the script once for each: under load most of the cost of a short script is its command.
 * ioredis' defineCommand sends it in full once and by its digest from then on, and in full again if the server does not
 * know it any more.
 */
export class Script {
  readonly #name: string;
  readonly #lua: string;
  #flags = "";
  readonly #waiting = new WeakMap<Redis, Call[]>();

  /**
   * @param name the name of the command on connections. @param files functions that the script uses, which are made once for
   * each command and know no KEYS and ARGV; then the script.
   */
  constructor(name: string, ...files: URL[]) {
    this.#name = name;
    const texts = files.map((file) => readFileSync(file, "utf8"));
    this.#lua = [...texts.slice(0, -1), "local function run(KEYS, ARGV)", texts.at(-1), "end", runCalls].join("\n");
  }

  /** A script that also runs while Redis is out of memory: one that ends work, and so makes room. */
  static endingWork(name: string, ...files: URL[]): Script {
    const script = new Script(name, ...files);
    script.#flags = allowOutOfMemory;
    return script;
  }

  /**
   * Runs the script. Calls on one connection run in the order of the calls.
   * @throws what this call failed with, whatever becomes of the others in its command; or the error of the connection.
   */
  run(redis: Redis, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.#wait(redis, keys, args, (send) => sendAtEndOfTurn(redis, send));
  }

  /**
   * Runs the script in the background: with the next script on this connection, so that it costs no message, or after
   * `withinMs`. @throws as {@link run}.
   */
  runWithNext(redis: Redis, keys: readonly string[], args: readonly Argument[], withinMs: number): Promise<unknown> {
    return this.#wait(redis, keys, args, (send) => sendWithNext(redis, send, withinMs));
  }

  #wait(
    redis: Redis,
    keys: readonly string[],
    args: readonly Argument[],
    schedule: (send: () => void) => void,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(redis) ?? [];
      this.#waiting.set(redis, waiting);
      waiting.push({ keys, args, resolve, reject });
      schedule(() => this.#sendWaiting(redis));
    });
  }

  #sendWaiting(redis: Redis): void {
    const calls = this.#waiting.get(redis)?.splice(0) ?? [];
    while (calls.length > 0) void this.#send(redis, calls.splice(0, countFitting(calls)));
  }

  async #send(redis: Redis, calls: readonly Call[]): Promise<void> {
    try {
      const replies = repliesOf.parse(await this.#command(redis, calls));
      for (const [at, { resolve, reject }] of calls.entries()) {
        const reply = replies[at];
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }

  #command(redis: Redis, calls: readonly Call[]): Promise<unknown> | undefined {
    // defineCommand adds a method under the script's name, which the types of ioredis cannot know.
    const commands = redis as unknown as Record<string, ((...all: unknown[]) => Promise<unknown>) | undefined>;
    if (!commands[this.#name]) redis.defineCommand(this.#name, { lua: `${this.#flags}\n${this.#lua}` });
    const keys: string[] = [];
    const args: Argument[] = [];
    for (const call of calls) {
      keys.push(...call.keys);
      args.push(call.keys.length, call.args.length, ...call.args);
    }
    // ioredis flattens lists.
    return commands[this.#name]?.call(redis, keys.length, keys, args);
  }
}

/** How many of the first calls fit into a command; at least one. */
function countFitting(calls: readonly Call[]): number {
  let bytes = 0;
  const beyond = calls.findIndex(({ args }, at) => {
    for (const arg of args) if (typeof arg !== "number") bytes += arg.length;
    return at > 0 && (at === callsPerCommandMax || bytes > bytesPerCommandMax);
  });
  return beyond < 0 ? calls.length : beyond;
}
