import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type GuardedProcess, startGuardedProcess } from "../../../local/guarded-process.ts";
import { codeLoading } from "../../harness/processes/code-loading.ts";

const replySchema = z.union([z.object({ error: z.string() }), z.object({ value: z.unknown() })]);

/** A program of the benchmark in its own process, which answers messages one at a time. It ends with this process. */
export class AskedProcess {
  readonly #guarded: GuardedProcess;

  private constructor(guarded: GuardedProcess) {
    this.#guarded = guarded;
  }

  /** Starts a program that calls `serve()`. @param environment its complete environment. */
  static async start(program: URL, environment: Record<string, string> = {}): Promise<AskedProcess> {
    const guarded = await startGuardedProcess(process.execPath, [fileURLToPath(program)], {
      env: { ...codeLoading, ...environment },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    return new AskedProcess(guarded);
  }

  get pid(): number {
    return this.#guarded.pid;
  }

  /** Sends a message and waits for the reply to it. @throws what the program throws, or that it has ended. */
  async ask<T>(schema: z.ZodType<T>, message: object): Promise<T> {
    const { process: child, exited } = this.#guarded;
    const answered = Promise.withResolvers<unknown>();
    child.once("message", answered.resolve);
    child.send(message);
    const ended = exited.then((reason) => Promise.reject(new Error(`a process of the benchmark ended: ${reason}`)));
    const reply = replySchema.parse(await Promise.race([answered.promise, ended]));
    if ("error" in reply) throw new Error(reply.error);
    return schema.parse(reply.value);
  }

  stop(): Promise<void> {
    return this.#guarded.stop();
  }
}

/** Replies to each message of the parent process, and ends with it. */
export function serve(handle: (message: unknown) => Promise<unknown>): void {
  process.on("message", (message) => {
    handle(message).then(
      (value) => process.send?.({ value }),
      (error: unknown) => process.send?.({ error: String(error instanceof Error ? error.stack : error) }),
    );
  });
  process.on("disconnect", () => process.exit());
}
