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

/** The commands of a pipeline, in the order in which they will be sent. The types of ioredis hide them. */
const collectedIn = (pipeline: Collected): Command[] => Reflect.get(pipeline, "_queue");

const stepsOfScripts: Record<string, Step> = {
  admit: "admit",
  addStandardJob: "enqueue",
  removeJob: "remove",
  moveToActive: "take",
  acquireLease: "lease",
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

/** The name under which a script was defined, without the version that BullMQ adds. */
function scriptOf(redis: Redis, sha: unknown): string | undefined {
  // ioredis types this object as empty.
  const scripts = redis.scriptsSet as Record<string, { sha: string }>;
  const found = Object.entries(scripts).find(([, script]) => script.sha === sha);
  return found?.[0].split(":")[0];
}

/** settle.lua has three arguments, and four more for each hold that it ends. A command may contain several calls of it. */
function stepOfSettle([, keys, ...rest]: readonly unknown[]): Step | undefined {
  if (!isAbout(rest.map(String).join(" "))) return undefined;
  return argumentsPerCall(rest.slice(Number(keys))).some((count) => count > 3) ? "drop" : "store";
}

/** How many arguments each call in a command has. See run-calls.lua. */
function argumentsPerCall(args: readonly unknown[]): number[] {
  const counts: number[] = [];
  for (let at = 0; at < args.length; at += 2 + Number(args[at + 1])) counts.push(Number(args[at + 1]));
  return counts;
}

/** The API and the worker repeat these all the time: a read that found nothing is not the step. */
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
      // The order may be younger than the command: a blocking read is sent long before there is anything to read.
      if (step && edgeAt(step) === "after" && hasHappened(step, reply)) die();
      resolve(reply);
    };
    // What is sent right behind the step would arrive before its reply.
    if (step && edgeAt(step) === "after" && !mayBeRepeated.has(step)) cut.add(this);
    if (!step || edgeAt(step) !== "before") return sendCommand.call(this, command);
    if (step !== "take") die();
    void untilKnownIdle(this, command).then(() => sendCommand.call(this, command));
    return command.promise;
  };

  /** A pipeline is no transaction: it is cut at the step, the commands before it run, and then the process dies. */
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

/** A worker polls for jobs; it dies only where there is one for it. */
async function untilKnownIdle(redis: Redis, moveToActive: Command): Promise<void> {
  const [, , waitingKey] = moveToActive.args;
  const waiting = await redis.llen(String(waitingKey)).catch(() => 0);
  if (waiting > 0) die();
}
