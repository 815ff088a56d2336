import type { RequestListener } from "node:http";
import { onTestFinished } from "vitest";
import { listen } from "./listen.ts";

/** Serves until the test ends. @returns the address. */
export async function serve(answer: RequestListener): Promise<string> {
  const { url, close } = await listen(answer);
  onTestFinished(close);
  return url;
}
