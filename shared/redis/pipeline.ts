import type { ChainableCommander } from "ioredis";

/** Sends a pipeline and returns the replies in order. @throws the first error of a command, or of the connection. */
export async function execPipeline(pipeline: ChainableCommander): Promise<unknown[]> {
  const results = (await pipeline.exec()) ?? [];
  return results.map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
}
