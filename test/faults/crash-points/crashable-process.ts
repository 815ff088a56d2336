import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type ProcessExit, SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import { lastWords, type Order, type Point } from "./points.ts";

const preload = `--import=${new URL("./preload.ts", import.meta.url).href}`;
const acknowledgeMsMax = 20_000;

/** A supervised API or worker that kills itself at the step that it is ordered to. */
export class CrashableProcess extends SupervisedProcess {
  /** What the next run is ordered before any other code of it runs. */
  order: Order = null;

  constructor(kind: "api" | "worker", number: number, environment: Record<string, string>) {
    super({
      kind,
      number,
      environment: { ...environment, NODE_OPTIONS: preload },
      ipc: true,
      expectedStderr: /^killed itself \w+ \w+\n$/,
      onStart: ({ child }) => {
        child.on("error", () => undefined); // An order that did not arrive: the process had just died.
        child.send({ order: this.order });
      },
    });
    this.restartsOnExit = true;
    this.start();
  }

  /** Orders the current run where to die, and waits until it has acknowledged that. */
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

/** Whether a run killed itself at this point, as it was ordered to. */
export const diedAt = ({ run, signal }: ProcessExit, point: Point) =>
  signal === "SIGKILL" && run.stderr.endsWith(lastWords(point));
