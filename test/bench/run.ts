import { openLog } from "../../shared/log.ts";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { AskedProcess } from "./processes/asked-process.ts";

const stepTimeoutMs = 15_000;

/** A run of the benchmark: its load generator, its open resources and its progress. */
export interface Run {
  generator: AskedProcess;
  shutdown: Shutdown;
  say: (line: string) => void;
}

/** The options of the commands that measure loads. */
export interface LoadOptions {
  rounds: number;
  /** The length of a round. */
  seconds: number;
  /** The folder of another service, for the same load. */
  yardstick?: string;
}

/**
 * Runs with a load generator, and closes everything that was opened, also if it fails or `interrupted` is aborted.
 * @throws what the run throws, or the reason of the interruption.
 */
export async function withRun<T>(
  { say, interrupted }: { say: Run["say"]; interrupted: AbortSignal },
  use: (run: Run) => Promise<T>,
): Promise<T> {
  const shutdown = new Shutdown(stepTimeoutMs);
  const stopped = new Promise<never>((_, reject) => {
    interrupted.addEventListener("abort", () => reject(interrupted.reason), { once: true });
  });
  const working = (async () => {
    const generator = await AskedProcess.start(new URL("./load/generator.ts", import.meta.url));
    shutdown.register("generator", () => generator.stop());
    return use({ generator, shutdown, say });
  })();
  try {
    return await Promise.race([working, stopped]);
  } finally {
    working.catch(() => undefined); // After an interruption its work fails.
    stopped.catch(() => undefined);
    await close(shutdown);
  }
}

/** Runs a part with its own shutdown, which the shutdown of the run includes. */
export async function withPart<T>(run: Run, use: (shutdown: Shutdown) => Promise<T>): Promise<T> {
  const shutdown = new Shutdown(stepTimeoutMs);
  run.shutdown.register("part of the run", () => close(shutdown));
  try {
    return await use(shutdown);
  } finally {
    await close(shutdown);
  }
}

const close = (shutdown: Shutdown) => shutdown.run(openLog({ name: "bench", level: "error" }));
