import { withTimeout } from "./wait-for.ts";
import { protocolTimes } from "../protocol-times.ts";
import type { Log } from "../log.ts";

interface Step {
  name: string;
  /** If it returns a promise, shutdown waits for it. */
  close: () => unknown;
}

/**
 * Closes what a process opened. Each resource registers its closing where it is opened. Closing runs in reverse order, so
 * that no resource is closed before its users.
 */
export class Shutdown {
  readonly #steps: Step[] = [];
  readonly #stepTimeoutMs: number;
  #closed: Promise<void> | undefined;

  /** @param stepTimeoutMs how long to wait for each resource. */
  constructor(stepTimeoutMs: number = protocolTimes.shutdownStepMs) {
    this.#stepTimeoutMs = stepTimeoutMs;
  }

  register(name: string, close: Step["close"]): void {
    this.#steps.push({ name, close });
  }

  /** Closes everything once. A step that fails or exceeds the timeout is logged, and the next one follows. */
  run(log: Log): Promise<void> {
    this.#closed ??= this.#closeAll(log);
    return this.#closed;
  }

  async #closeAll(log: Log): Promise<void> {
    for (const step of this.#steps.toReversed()) {
      try {
        await withTimeout(this.#stepTimeoutMs, Promise.resolve(step.close()));
      } catch (error) {
        log.error({ err: error, step: step.name }, "a resource did not close cleanly");
      }
    }
  }

  /** Closes on the first SIGTERM or SIGINT; a second signal ends the process at once. */
  onSignals(log: Log): void {
    let isStopping = false;
    const stop = (signal: NodeJS.Signals) => {
      if (isStopping) process.exit(1);
      isStopping = true;
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
