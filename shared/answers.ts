import type { ChainableCommander, Redis } from "ioredis";
import { z } from "zod";
import { type ErrorCode, type ErrorDetails, errors } from "./errors.ts";
import type { Query } from "./query.ts";
import type { Result } from "./results.ts";

/**
 * The way back. Each API process has an inbox, a stream in Redis, that its jobs name; the worker appends the finished
 * answer there as the very bytes that the API will send. A reader that lost its connection goes on where it stopped. What
 * is lost all the same ends as a time-out, and its charge is given back.
 */

// The reader trims what it has read; these bounds are for a reader that is gone.
const inboxLengthMax = 10_000;
const inboxMs = 120_000;

export const inboxKey = (apiId: string) => `inbox:${apiId}`;

/** What the search cost and took, for the one log line that the API writes about it. */
export const searchTrace = z.object({
  provider: z.string(),
  calls: z.array(z.object({ provider: z.string(), outcome: z.string(), ms: z.number() })),
  costMicroUsd: z.number(),
  queueMs: z.number(),
  runMs: z.number(),
});
export type SearchTrace = z.infer<typeof searchTrace>;

/** How a search ended: its answer's bytes, charged or free, or the error that the caller is told. */
export type Outcome =
  | { kind: "answer"; requestId: string; body: string; chargedMils: number }
  | { kind: "failure"; code: ErrorCode; details: ErrorDetails };

/** The body of a 200, serialised once, by the worker. Keys in the contract's order. */
export function writeAnswer(answer: {
  requestId: string;
  query: Query;
  creditsCharged: number;
  creditsRemaining: number;
  totalResultsCount: number;
  results: readonly Result[];
}): string {
  return JSON.stringify(answer);
}

/** A failure as it stands under an Idempotency-Key for the repeats that wait, and in an inbox. */
export function writeFailure(code: ErrorCode, details: ErrorDetails): string {
  return JSON.stringify({ code, details });
}

const failure = z.object({
  code: z.custom<ErrorCode>((code) => typeof code === "string" && code in errors),
  details: z.record(z.string(), z.unknown()),
});

export function readFailure(text: string): { kind: "failure" } & z.infer<typeof failure> {
  return { kind: "failure", ...failure.parse(JSON.parse(text)) };
}

/** Appends an outcome for the request that waits at this inbox. Appending twice is harmless: the first one read counts. */
export function appendOutcome(
  on: Redis | ChainableCommander,
  inbox: string,
  requestId: string,
  outcome: Outcome,
  trace: SearchTrace,
): void {
  const [kind, owner, charged, payload] =
    outcome.kind === "answer"
      ? ["answer", outcome.requestId, outcome.chargedMils, outcome.body]
      : ["failure", requestId, 0, writeFailure(outcome.code, outcome.details)];
  const fields = ["for", requestId, "kind", kind, "owner", owner, "charged", charged, "payload", payload];
  void on.xadd(inbox, "MAXLEN", "~", inboxLengthMax, "*", ...fields, "trace", JSON.stringify(trace));
  void on.pexpire(inbox, inboxMs);
}

/** One entry of an inbox. @throws where the entry is not one of ours. */
export function readEntry(fields: readonly string[]): { requestId: string; outcome: Outcome; trace: SearchTrace } {
  const entry = new Map(fields.flatMap((name, at) => (at % 2 ? [] : [[name, fields[at + 1] ?? ""]])));
  const payload = entry.get("payload") ?? "";
  const trace = searchTrace.parse(JSON.parse(entry.get("trace") ?? ""));
  const outcome: Outcome =
    entry.get("kind") === "answer"
      ? {
          kind: "answer",
          requestId: entry.get("owner") ?? "",
          body: payload,
          chargedMils: z.coerce.number().parse(entry.get("charged")),
        }
      : readFailure(payload);
  return { requestId: entry.get("for") ?? "", outcome, trace };
}
