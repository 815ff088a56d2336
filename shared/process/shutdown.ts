import { withTimeout } from "../concurrency/with-timeout.ts";
import { protocolTimes } from "../protocol-times.ts";
import type { Log } from "../log.ts";

interface Step {
  name: string;
  /** May return a promise, which is waited for. */
  close: () => unknown;
}

/**
 * What was opened, in order. Each resource registers its own closing on the line that opens it, and closing runs in
 * reverse, so that nothing is closed before what uses it.
 */
export class Shutdown {
  readonly #steps: Step[] = [];
  #closed: Promise<void> | undefined;

  register(name: string, close: Step["close"]): void {
    this.#steps.push({ name, close });
  }

  /** Closes everything once, each step within the bound; a step that fails or hangs never keeps the others from closing. */
  run(log: Log, stepMsMax = protocolTimes.shutdownStepMs): Promise<void> {
    this.#closed ??= this.#closeAll(log, stepMsMax);
    return this.#closed;
  }

  async #closeAll(log: Log, stepMsMax: number): Promise<void> {
    for (const step of this.#steps.toReversed()) {
      try {
        await withTimeout(stepMsMax, Promise.resolve(step.close()));
      } catch (error) {
        log.error({ err: error, step: step.name }, "a resource did not close cleanly");
      }
    }
  }

  /** Closes on the first SIGTERM or SIGINT; a second signal ends the process at once. */
  onSignals(log: Log): void {
    let asked = false;
    const stop = (signal: NodeJS.Signals) => {
      if (asked) process.exit(1);
      asked = true;
      log.info({ signal }, "stopping");
      void this.run(log).then(() => {
        log.info("stopped");
        process.exit(0);
      });
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
  }
}
