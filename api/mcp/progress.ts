import type { ServerContext } from "@modelcontextprotocol/server";

const tellEveryMs = 1_000;

/**
 * Tells once a second that a search still runs, to whoever asked for it; no longer than it has until its deadline.
 * @returns what ends it.
 */
export function sendProgress({ mcpReq }: ServerContext, deadlineMs: number): () => void {
  const { _meta: meta } = mcpReq;
  const progressToken = meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  const last = Math.ceil(deadlineMs / tellEveryMs);
  let progress = 0;
  const timer = setInterval(() => {
    progress += 1;
    const message = `Searching for ${progress} s, at most ${last} s.`;
    const params = { progressToken, progress, message };
    // Whoever is gone needs no progress.
    void mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
    if (progress >= last) clearInterval(timer);
  }, tellEveryMs);
  return () => clearInterval(timer);
}
