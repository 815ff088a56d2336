import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type ProcessExit, SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import { lastWords, type Order, type Point } from "./points.ts";

const preload = `--import=${new URL("./preload.ts", import.meta.url).href}`;
const acknowledgeMsMax = 20_000;

/** A supervised API or worker that kills itself at the step that its order names. */
export class CrashableProcess extends SupervisedProcess {
  /** The order that the next run gets before any of its code runs. */
  order: Order = null;

  constructor(kind: "api" | "worker", number: number, environment: Record<string, string>) {
    super({
      kind,
      number,
      environment: { ...environment, NODE_OPTIONS: preload },
      ipc: true,
      expectedStderr: /^killed itself \w+ \w+\n$/,
      onStart: ({ child }) => {
        child.on("error", () => undefined); // The process died before it got the order.
        child.send({ order: this.order });
      },
    });
    this.restartsOnExit = true;
    this.start();
  }

  /** Sends an order to the running process, and waits until it is acknowledged. */
  async arm(order: Order): Promise<void> {
    this.order = order;
    const child = this.run?.child;
    if (!child?.connected) return;
    const isOver = new AbortController();
    const { signal } = isOver;
    const acknowledged = Promise.race([
      once(child, "message", { signal }),
      once(child, "exit", { signal }),
      sleep(acknowledgeMsMax, undefined, { signal, ref: false }),
    ]);
    child.send({ order }, () => undefined);
    await acknowledged.finally(() => isOver.abort());
  }
}

/** Whether a run killed itself at this point. */
export const diedAt = ({ run, signal }: ProcessExit, point: Point) =>
  signal === "SIGKILL" && run.stderr.endsWith(lastWords(point));
