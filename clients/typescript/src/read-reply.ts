import type { Reply } from "./answers.ts";
import type { Failure } from "./errors.ts";

/** What one request brought. */
export type Attempted<Answer> = Omit<Reply<Answer>, "idempotencyKey" | "attempts"> | Failure;

/** Reads a whole response. An answer has the given field. */
export function readReply<Answer>(response: Response, text: string, answerField: string): Attempted<Answer> {
  const { status, ok, headers } = response;
  const body = parse(text);
  const requestId = headers.get("x-request-id") ?? undefined;
  if (ok && isObject(body) && answerField in body) {
    const isReplay = headers.get("idempotency-replayed") === "true";
    // The API answers as its document says; the client's types are made from it.
    return { data: body as Answer, status, headers, requestId: requestId ?? "", isReplay };
  }
  const about = { status, requestId, retryAfterMs: retryAfterMsOf(headers) };
  const error = isObject(body) ? body["error"] : undefined;
  if (!ok && isObject(error) && typeof error["code"] === "string") {
    const { code, message, details } = error;
    const known = { code, message: String(message), details: isObject(details) ? details : {} };
    return { ...about, ...known, help: helpOf(response), ...verdictOf(status, known) };
  }
  // A proxy's own error, or an answer that something on the way has changed. Of a 2xx or 5xx it may hide that the search was charged.
  const details = { text: text.slice(0, 200) };
  const isUnknown = ok || status >= 500;
  const code = isUnknown ? "lost_reply" : "unexpected_reply";
  const message = `Expected an answer of Serpmill; got HTTP ${status}, which is not one. Check the address of the API.`;
  return { ...about, code, message, details, mayBeCharged: isUnknown, canRepeat: isUnknown || status === 429 };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// With these the API has run no search for this request. With another one it may have.
const refusedBefore = new Set(["no_workers", "queue_too_long", "shutting_down", "token_lookups_full"]);

/** What an error says about a repeat, and about the charge. */
function verdictOf(status: number, error: { code: string; details: Record<string, unknown> }) {
  const { reason } = error.details;
  switch (error.code) {
    case "rate_limited":
    case "internal_error":
      return { canRepeat: true, mayBeCharged: false };
    case "engine_error":
      return { canRepeat: reason !== "provider_refused", mayBeCharged: false };
    case "unavailable":
      return { canRepeat: true, mayBeCharged: !refusedBefore.has(String(reason)) };
    default: {
      // `engine_timeout`, and what a newer API may add.
      const isUnknown = status >= 500 && status !== 501;
      return { canRepeat: isUnknown, mayBeCharged: isUnknown };
    }
  }
}

/** The link with `rel="help"`, as an absolute address. */
function helpOf({ headers, url }: Response): string | undefined {
  const [, target] = /<([^<>]*)>;\s*rel="?help"?/.exec(headers.get("link") ?? "") ?? [];
  return target === undefined || !URL.canParse(target, url) ? undefined : new URL(target, url).href;
}

/** `Retry-After` in seconds, or as a date, which is read against the server's own clock. */
function retryAfterMsOf(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  const ms = Date.parse(value) - Date.parse(headers.get("date") ?? "");
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
