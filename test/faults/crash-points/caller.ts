import { setTimeout as sleep } from "node:timers/promises";
import { type Attempt, priceMils } from "../audit/evidence.ts";
import { sendSearch } from "../audit/send-search.ts";
import type { IsolatedStack } from "./isolated-stack.ts";

const retryPauseMs = 200;
const listensMsMax = 60_000;

export interface CallerRequest {
  organizationId: string;
  token: string;
  tokenId: string;
  keyword: string;
  /** Without a key the caller retries only what was refused. */
  key: string | undefined;
  firstApi: 0 | 1;
  disconnect: AbortSignal;
  /** How long after its first attempt the caller may still retry. */
  retryForMs: number;
  onAttempt?: () => void;
}

/**
 * Searches as a caller does. An API that has just started on a slow machine answers 503: the caller repeats that there, until the
 * API comes to its step. With a key it retries at the other API after a broken connection, a 502 or 504.
 */
export async function searchWithRetries(stack: IsolatedStack, request: CallerRequest): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  const giveUpAtMs = performance.now() + request.retryForMs;
  let retries = 0;
  for (;;) {
    const attempt = await search(stack, request, (request.firstApi + retries) % 2 === 0 ? 0 : 1);
    attempts.push(attempt);
    const { status } = attempt.answer ?? {};
    const isRefused = status === 503;
    if (!isRefused) {
      retries += 1;
      request.onAttempt?.();
    }
    const mayHelp = isRefused || (request.key !== undefined && [undefined, 502, 504].includes(status));
    if (!mayHelp || performance.now() > giveUpAtMs) return attempts;
    await sleep(retryPauseMs);
  }
}

/** Makes one attempt at this API, or at the other while this one is down. */
async function search(stack: IsolatedStack, request: CallerRequest, wanted: 0 | 1): Promise<Attempt> {
  const { organizationId, token, tokenId, keyword, key, disconnect: signal } = request;
  const { api, url } = await chooseApi(stack, wanted);
  const sentAtMs = performance.now();
  const attempt: Attempt = { organizationId, tokenId, keyword, key, priceMils, api, sentAtMs, endedAtMs: 0 };
  await sendSearch(attempt, { url: `${url}/v1/serp/search`, token, signal, whenAborted: "disconnected" });
  return attempt;
}

/** Chooses an API as a load balancer does: this one, or the other while this one is down. */
async function chooseApi({ apis }: IsolatedStack, wanted: 0 | 1): Promise<{ api: 0 | 1; url: string }> {
  const other = wanted === 0 ? 1 : 0;
  const giveUpAtMs = performance.now() + listensMsMax;
  for (;;) {
    for (const api of [wanted, other] as const) {
      // A pair of literals, not of numbers.
      const { url } = apis[api];
      if (url !== undefined) return { api, url };
    }
    if (performance.now() > giveUpAtMs) throw new Error("no API listens");
    await sleep(20);
  }
}
