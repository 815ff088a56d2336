import { z } from "zod";
import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { AskedProcess } from "../processes/asked-process.ts";

/** Starts a provider in Serper's format that answers each page after a delay, in a process of its own. */
export async function openProvider(
  delayMs: number,
  shutdown: Shutdown,
): Promise<{ pid: number; settings: Record<string, string> }> {
  const provider = await AskedProcess.start(new URL("./provider-program.ts", import.meta.url));
  shutdown.register("provider", () => provider.stop());
  return { pid: provider.pid, settings: await provider.ask(z.record(z.string(), z.string()), { delayMs }) };
}
