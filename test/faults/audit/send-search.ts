import { type Dispatcher, request } from "undici";
import { z } from "zod";
import type { Attempt } from "./evidence.ts";

const answerHead = z.object({ requestId: z.string() });

/** Sends the search of an attempt and records its outcome. @throws if an answer arrives whole and is not one of ours. */
export async function sendSearch(
  attempt: Attempt,
  {
    url,
    token,
    fields,
    dispatcher,
    signal,
    whenAborted,
  }: {
    url: string | URL;
    token: string;
    /** The fields of the request besides the keyword. */
    fields?: object;
    /** Without it the search has its own connection. */
    dispatcher?: Dispatcher;
    signal: AbortSignal;
    /** What the abortion means. */
    whenAborted: "disconnected" | "silent";
  },
): Promise<void> {
  const { keyword, key } = attempt;
  try {
    const { statusCode, headers, body } = await request(url, {
      ...(dispatcher ? { dispatcher } : { reset: true }),
      signal,
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...(key !== undefined && { "idempotency-key": key }),
      },
      body: JSON.stringify({ keyword, ...fields }),
    });
    const text = await body.text();
    const { requestId } = answerHead.parse(JSON.parse(text));
    attempt.answer = { status: statusCode, requestId, text, replayed: headers["idempotency-replayed"] === "true" };
  } catch (error) {
    if (error instanceof z.ZodError || error instanceof SyntaxError) throw error;
    attempt.noAnswer = signal.aborted ? whenAborted : "broken";
  }
  attempt.endedAtMs = performance.now();
}
