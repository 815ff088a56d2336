import type { Request, Response } from "express";
import { readQuery } from "../../shared/query.ts";
import type { PassGate } from "../admission.ts";
import type { ApiContext } from "../context.ts";
import { runSearch, type SearchAnswer } from "../search.ts";
import { deliver } from "./deliver.ts";
import { exchangeOf } from "./exchange.ts";
import { readIdempotencyKey } from "./idempotency-key.ts";
import { setRateLimit } from "./rate-limit.ts";
import { readJson } from "./read-json.ts";

/** POST /v1/serp/search: identity, then the request, then the search itself. */
export function answerSearch(context: ApiContext, passGate: PassGate) {
  return async (request: Request, response: Response) => {
    const { requestId, receivedAtMs, notes } = exchangeOf(response);
    const gone = new AbortController();
    response.once("close", () => {
      if (!response.writableFinished) gone.abort();
    });

    const caller = await context.authenticate(request);
    notes.organizationId = caller.organizationId;
    const idempotencyKey = readIdempotencyKey(request);
    const query = readQuery(await readJson(request));
    const call = { requestId, receivedAtMs, caller, query, idempotencyKey, gone: gone.signal };
    const answer = await runSearch(context, passGate, call);

    Object.assign(notes, noteAnswer(answer));
    response.setHeader("X-Request-Id", answer.requestId);
    if (answer.replayed) response.setHeader("Idempotency-Replayed", "true");
    setRateLimit(response, caller.plan, answer.window);
    deliver(context, call, answer, request, response);
  };
}

/** What the log line tells of a search that was answered. */
export function noteAnswer({ requestId, replayed, chargedMils, trace }: SearchAnswer) {
  return {
    outcome: replayed ? "replayed" : "answered",
    ...(replayed && { answerOf: requestId }),
    chargedMils,
    ...trace,
  };
}
