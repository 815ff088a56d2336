import { type Command, Pipeline, Redis } from "ioredis";
import { die, edgeAt, isAbout } from "./kill-order.ts";
import type { Step } from "./points.ts";

/** Everything that the product sends to Redis goes through one of these two. */
// oxlint-disable-next-line typescript/unbound-method -- called with the connection that it was called on
const { sendCommand } = Redis.prototype;
// ioredis adds exec at run time.
const pipelines = Pipeline.prototype as unknown as { exec: (this: Collected, ...args: unknown[]) => unknown };
const { exec } = pipelines;

interface Collected {
  redis: Redis;
}

/** The commands of a pipeline, in the order in which they are sent. The types of ioredis hide them. */
const collectedIn = (pipeline: Collected): Command[] => Reflect.get(pipeline, "_queue");

const stepsOfScripts: Record<string, Step> = {
  admit: "admit",
  addStandardJob: "enqueue",
  removeJob: "remove",
  moveToActive: "take",
  releaseLease: "unlease",
  reply: "answer",
  moveToFinished: "finish",
  moveJobFromActiveToWait: "release",
};

function stepOf(redis: Redis, command: Command): Step | undefined {
  const { name, args } = command;
  if (name === "xread") return "arrive";
  if (name === "publish") return "announce";
  if (name === "hmget") return args.includes("failure") ? "poll" : undefined;
  const script = scriptOf(redis, args[0]);
  return script === "settle" ? stepOfSettle(args) : stepsOfScripts[script ?? ""];
}

/** The name of a script, without the version that BullMQ appends. */
function scriptOf(redis: Redis, sha: unknown): string | undefined {
  // ioredis types this object as empty.
  const scripts = redis.scriptsSet as Record<string, { sha: string }>;
  const found = Object.entries(scripts).find(([, script]) => script.sha === sha);
  return found?.[0].split(":")[0];
}

/**
 * settle.lua takes nine arguments, of which the fifth is the number of limited tokens. Two more follow for each of these, and
 * five for each hold that it ends. A command may contain several calls.
 */
function stepOfSettle([, keys, ...rest]: readonly unknown[]): Step | undefined {
  if (!isAbout(rest.map(String).join(" "))) return undefined;
  const endsHolds = (args: readonly unknown[]) => args.length > 9 + 2 * Number(args[4]);
  return callsIn(rest.slice(Number(keys))).some(endsHolds) ? "drop" : "store";
}

/** The arguments of each call in a command. See run-calls.lua. */
function callsIn(args: readonly unknown[]): unknown[][] {
  const calls: unknown[][] = [];
  for (let at = 0; at < args.length; ) {
    const end = at + 2 + Number(args[at + 1]);
    calls.push(args.slice(at + 2, end));
    at = end;
  }
  return calls;
}

/** Processes repeat these reads all the time. One that finds nothing is not the step. */
const mayBeRepeated: ReadonlySet<Step> = new Set(["arrive", "take"]);

function hasHappened(step: Step, reply: unknown): boolean {
  if (step === "arrive") return reply !== null;
  if (step === "take") return Array.isArray(reply) && Array.isArray(reply[0]);
  return true;
}

/** Connections on which the last command was sent. */
const cut = new WeakSet<Redis>();

export function watchRedis(): void {
  Redis.prototype.sendCommand = function (this: Redis, command, stream) {
    // A pipeline's commands were examined together.
    if (stream) return sendCommand.call(this, command, stream);
    if (cut.has(this)) return command.promise;
    const step = stepOf(this, command);
    const { resolve } = command;
    command.resolve = (reply) => {
      // The order may be newer than the command: a blocking read is sent long before there is anything to read.
      if (step && edgeAt(step) === "after" && hasHappened(step, reply)) die();
      resolve(reply);
    };
    // A later command would be sent before the reply arrives.
    if (step && edgeAt(step) === "after" && !mayBeRepeated.has(step)) cut.add(this);
    if (step && edgeAt(step) === "before") die();
    return sendCommand.call(this, command);
  };

  /** A pipeline is no transaction. It is cut at the step: the commands before it run, and then the process dies. */
  pipelines.exec = function (...args) {
    const collected = collectedIn(this);
    const edges = collected.map((command) => {
      const step = stepOf(this.redis, command);
      return step && edgeAt(step);
    });
    const found = edges.findIndex((edge) => edge !== undefined);
    if (found >= 0) {
      collected.splice(edges[found] === "before" ? found : found + 1);
      const last = collected.at(-1);
      if (!last) die();
      last.resolve = () => die();
    }
    return exec.apply(this, args);
  };
}
