import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { IsolatedStack } from "./isolated-stack.ts";

const retryPauseMs = 200;
const listensMsMax = 20_000;

const answerBody = z.object({ requestId: z.string(), creditsCharged: z.number() });

/** One request and its end: an answer, or none, because the connection broke. */
export interface Attempt {
  tookMs: number;
  status: number | undefined;
  /** The bytes of a whole answer. */
  text: string | undefined;
}

export interface Asked {
  token: string;
  keyword: string;
  /** Without one nothing is repeated. */
  key: string | undefined;
  firstApi: 0 | 1;
  gone?: AbortSignal;
  /** How long after its beginning a caller with a key begins no further attempt. */
  patienceMs: number;
  onAttempt?: () => void;
}

/** Asks as callers do: with a key again after a broken connection or a 502, 503, 504, at the other API. */
export async function ask(lane: IsolatedStack, asked: Asked): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  const giveUpAtMs = performance.now() + asked.patienceMs;
  for (;;) {
    const attempt = await once(lane, asked, (asked.firstApi + attempts.length) % 2);
    attempts.push(attempt);
    asked.onAttempt?.();
    const mayHelp = attempt.status === undefined || [502, 503, 504].includes(attempt.status);
    if (!mayHelp || asked.key === undefined || performance.now() > giveUpAtMs) return attempts;
    await sleep(retryPauseMs);
  }
}

async function once(lane: IsolatedStack, { token, keyword, key, gone }: Asked, wanted: number): Promise<Attempt> {
  const url = await listening(lane, wanted);
  const beganMs = performance.now();
  const end = (status?: number, text?: string): Attempt => ({ tookMs: performance.now() - beganMs, status, text });
  try {
    const response = await fetch(`${url}/v1/serp/search`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        connection: "close",
        ...(key !== undefined && { "idempotency-key": key }),
      },
      body: JSON.stringify({ keyword }),
      ...(gone && { signal: gone }),
    });
    return end(response.status, await response.text());
  } catch {
    return end(); // Broken off before its last byte, or hung up.
  }
}

/** The API that a load balancer would choose: this one, or the other while it is away. */
async function listening(lane: IsolatedStack, wanted: number): Promise<string> {
  const giveUpAtMs = performance.now() + listensMsMax;
  for (;;) {
    const url = lane.apis[wanted]?.url ?? lane.apis[1 - wanted]?.url;
    if (url) return url;
    if (performance.now() > giveUpAtMs) throw new Error("no API listens");
    await sleep(20);
  }
}

export const readAnswer = (text: string) => answerBody.parse(JSON.parse(text));
