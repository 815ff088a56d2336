import { Agent, request as send } from "undici";
import type { Failure, PageAnswer, PageRequest, Provider, Transport } from "../provider.ts";

const connectMsMax = 5_000;
/** A page of results has some ten kilobytes, a hundred results with everything about them half a megabyte. */
const bodyBytesMax = 4 * 1024 * 1024;
const connectionsPerProviderMax = 256;
const idleConnectionMsMax = 30_000;

/** Errors of undici that speak of a wrong answer, and not of an unreachable provider. */
const unreadableCodes = new Set([
  "UND_ERR_RES_EXCEEDED_MAX_SIZE",
  "UND_ERR_HEADERS_OVERFLOW",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
]);

export type ProviderHttp = {
  /** One request to one provider: its answer, or why there is none. Never throws, never takes longer than `msMax`. */
  send: (
    provider: Provider,
    request: PageRequest,
    limits: { msMax: number; stop: AbortSignal },
  ) => Promise<PageAnswer | Failure>;
  close: () => Promise<void>;
};

/** Opens the connections to providers. They are kept alive between searches. */
export function openProviderHttp(): ProviderHttp {
  const agent = new Agent({
    connections: connectionsPerProviderMax,
    connect: { timeout: connectMsMax },
    keepAliveTimeout: idleConnectionMsMax,
    maxResponseSize: bodyBytesMax,
    // Our own time-out per attempt counts from the first byte sent to the last received; these would count anew.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const overHttp: Transport = async ({ url, method, headers, body }, signal) => {
    const answer = await send(url, {
      dispatcher: agent,
      method,
      headers,
      body: method === "GET" ? null : body,
      signal,
    });
    return { status: answer.statusCode, headers: answer.headers, body: await answer.body.text() };
  };
  return {
    send: (provider, request, limits) => askOnce(provider.transport ?? overHttp, request, limits),
    close: () => agent.destroy(),
  };
}

async function askOnce(
  transport: Transport,
  request: PageRequest,
  limits: { msMax: number; stop: AbortSignal },
): Promise<PageAnswer | Failure> {
  const attempt = new AbortController();
  const timeUp = Promise.withResolvers<Failure>();
  const giveUp = () => {
    timeUp.resolve({ failure: "timeout" });
    attempt.abort();
  };
  const timer = setTimeout(giveUp, limits.msMax);
  limits.stop.addEventListener("abort", giveUp, { once: true });
  if (limits.stop.aborted) giveUp();
  try {
    // The race keeps the promise also where a transport does not listen to its signal.
    return await Promise.race([timeUp.promise, carry(transport, request, attempt.signal)]);
  } finally {
    clearTimeout(timer);
    limits.stop.removeEventListener("abort", giveUp);
  }
}

async function carry(transport: Transport, request: PageRequest, signal: AbortSignal): Promise<PageAnswer | Failure> {
  try {
    const answer = await transport(request, signal);
    // A redirect is not followed: it would take our key along to somebody else.
    return answer.status >= 300 && answer.status < 400 ? { failure: "unreadable" } : answer;
  } catch (error) {
    if (signal.aborted) return { failure: "timeout" };
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code.startsWith("UND_ERR_INVALID")) return { failure: "request_refused" };
    // Only the kind goes on. The error itself may hold the request, and with it the key.
    return { failure: unreadableCodes.has(code) || code.startsWith("HPE_") ? "unreadable" : "unavailable" };
  }
}
