import type { ChainableCommander } from "ioredis";

/** What became of one command of a pipeline: its reply, or why it failed. */
export interface CommandResult {
  error: Error | null;
  reply: unknown;
}

/** Sends a pipeline. @returns what became of each command, in order: one that fails does not hide the others. */
export async function execEach(pipeline: ChainableCommander): Promise<CommandResult[]> {
  const results = (await pipeline.exec()) ?? [];
  return results.map(([error, reply]) => ({ error, reply }));
}

/** Sends a pipeline and returns the replies in order. @throws the first error of a command, or of the connection. */
export async function execPipeline(pipeline: ChainableCommander): Promise<unknown[]> {
  return (await execEach(pipeline)).map(({ error, reply }) => {
    if (error) throw error;
    return reply;
  });
}
