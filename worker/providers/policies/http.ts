import dns from "node:dns";
import type { LookupFunction } from "node:net";
import { Agent, request as send } from "undici";
import { waitFor } from "../../../shared/concurrency/wait-for.ts";
import { Semaphore } from "../../../shared/concurrency/semaphore.ts";
import type { Failure, PageAnswer, PageRequest, Provider, Transport } from "../provider.ts";

const connectTimeoutMs = 5_000;
/** A page of results has some ten kilobytes, a hundred results with all their details half a megabyte. */
const pageBytesMax = 4 * 1024 * 1024;
/** Larger bodies are read a few at a time: one for each running call would not fit into memory. */
const usualBodyBytes = 128 * 1024;
const largeBodiesMax = 8;
// Shorter than a firewall or a NAT keeps an idle connection. Of one that it dropped without a word, a call gets no answer.
const idleConnectionMsMax = 30_000;

/** Error codes of undici that mean an unusable answer, and not an unreachable provider. */
const unreadableCodes = new Set([
  "UND_ERR_RES_EXCEEDED_MAX_SIZE",
  "UND_ERR_HEADERS_OVERFLOW",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
]);

type Limits = {
  /** From sending the first byte to receiving the last one. */
  timeoutMs: number;
  /** Ends the request early, with a `timeout` as well. */
  signal?: AbortSignal;
};

export type ProviderHttp = {
  /** Sends one request to one provider. Never throws. @returns its answer, whatever the status, or why there is none. */
  send: (provider: Provider, request: PageRequest, limits: Limits) => Promise<PageAnswer | Failure>;
  close: () => Promise<void>;
};

/**
 * Opens the connection pools to the providers. Connections are kept alive between searches. The pools are unbounded: each
 * call needs one connection, and the bulkhead of the provider bounds the calls. A wait for a connection would count as the
 * provider's time.
 * @param options.bodyBytesMax the largest answer that is read.
 * @param options.providers how many share the large bodies. None waits for a slow body of another.
 * @param options.idleMsMax how long an unused connection is kept, also if the provider would keep it longer.
 * @param options.lookup finds the addresses of a provider's host.
 */
export function openProviderHttp({
  bodyBytesMax = pageBytesMax,
  providers = 1,
  idleMsMax = idleConnectionMsMax,
  lookup = dns.lookup,
}: {
  bodyBytesMax?: number;
  providers?: number;
  idleMsMax?: number;
  lookup?: LookupFunction;
} = {}): ProviderHttp {
  const agent = new Agent({
    // With HTTP/2 all calls to a host share one connection. Once it falls silent, each call on it times out, and ends its stream
    // alone. With HTTP/1.1 a call that times out closes its connection.
    allowH2: false,
    connect: { timeout: connectTimeoutMs, lookup: shareLookups(lookup) },
    keepAliveTimeout: idleMsMax,
    keepAliveMaxTimeout: idleMsMax,
    maxResponseSize: bodyBytesMax,
    // The timeout of the request covers headers and body; these two would start to count again.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const overHttp = (largeBodies: Semaphore): Transport => {
    return async ({ url, headers, body }, signal) => {
      const sent = body === "" ? ({ method: "GET" } as const) : ({ method: "POST", body } as const);
      const answer = await send(url, { dispatcher: agent, headers, signal, ...sent });
      return { status: answer.statusCode, headers: answer.headers, body: await readText(answer.body, largeBodies) };
    };
  };
  const transports = new Map<string, Transport>();
  const transportTo = (name: string) => {
    const transport = transports.get(name) ?? overHttp(new Semaphore(Math.ceil(largeBodiesMax / providers)));
    transports.set(name, transport);
    return transport;
  };
  return {
    send: (provider, request, limits) =>
      sendWithTimeout(provider.transport ?? transportTo(provider.name), request, limits),
    close: () => agent.destroy(),
  };
}

/**
 * Connections that wait for the same host share one look-up. A process runs few look-ups at once: a host whose name server does
 * not answer would otherwise keep those of all other providers waiting.
 */
function shareLookups(lookup: LookupFunction): LookupFunction {
  const waiting = new Map<string, Parameters<LookupFunction>[2][]>();
  return (host, options, callback) => {
    const callbacks = waiting.get(host) ?? [];
    callbacks.push(callback);
    if (waiting.has(host)) return;
    waiting.set(host, callbacks);
    lookup(host, options, (...found) => {
      waiting.delete(host);
      for (const each of callbacks) each(...found);
    });
  };
}

/** Reads a body. A large one waits for its turn after the first part, within the time of its call; so does the provider. */
async function readText(body: AsyncIterable<Buffer>, largeBodies: Semaphore): Promise<string> {
  const chunks: Buffer[] = [];
  const iterator = body[Symbol.asyncIterator]();
  const readOn = async (bytesMax: number) => {
    for (let bytes = 0; bytes <= bytesMax; ) {
      const next = await iterator.next();
      if (next.done) return new TextDecoder().decode(Buffer.concat(chunks.splice(0)));
      chunks.push(next.value);
      bytes += next.value.length;
    }
    return undefined;
  };
  const whole = (await readOn(usualBodyBytes)) ?? (await largeBodies.run(() => readOn(Number.POSITIVE_INFINITY)));
  return whole ?? "";
}

async function sendWithTimeout(
  transport: Transport,
  request: PageRequest,
  { timeoutMs, signal }: Limits,
): Promise<PageAnswer | Failure> {
  if (signal?.aborted) return { failure: "timeout" };
  const abort = new AbortController();
  // The wait ends even if a transport ignores its signal.
  const waited = await waitFor(carry(transport, request, abort.signal), { timeoutMs, signal });
  if (waited.ended === "done") return waited.value;
  abort.abort();
  return { failure: "timeout" };
}

async function carry(transport: Transport, request: PageRequest, signal: AbortSignal): Promise<PageAnswer | Failure> {
  try {
    const answer = await transport(request, signal);
    // Redirects are not followed: that would send our API key to another host.
    return answer.status >= 300 && answer.status < 400 ? { failure: "unreadable" } : answer;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code.startsWith("UND_ERR_INVALID")) return { failure: "request_refused" };
    // Only the kind is passed on. The error itself may hold the request, and with it the API key.
    return { failure: unreadableCodes.has(code) || code.startsWith("HPE_") ? "unreadable" : "unavailable" };
  }
}
