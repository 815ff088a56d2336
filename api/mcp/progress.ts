import type { ServerContext } from "@modelcontextprotocol/server";

const intervalMs = 1_000;

/**
 * Sends a progress notification every second until the deadline, if the client asked for progress.
 * @returns a function that stops it.
 */
export function sendProgress({ mcpReq }: ServerContext, timeoutMs: number): () => void {
  const { _meta: meta } = mcpReq;
  const progressToken = meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  const last = Math.ceil(timeoutMs / intervalMs);
  let progress = 0;
  const timer = setInterval(() => {
    progress += 1;
    const message = `Searching for ${progress} s, at most ${last} s.`;
    const params = { progressToken, progress, message };
    // A notification fails only if the client has disconnected.
    void mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
    if (progress >= last) clearInterval(timer);
  }, intervalMs);
  return () => clearInterval(timer);
}
