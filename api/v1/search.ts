import type { Request, Response } from "express";
import { readQuery } from "../../shared/query/query.ts";
import type { Admit } from "../search/admission.ts";
import type { ApiContext } from "../context.ts";
import { runSearch, type DeliverableAnswer } from "../search/search.ts";
import { deliver } from "../search/delivery.ts";
import { type LogFields, requestScopeOf } from "../http/request-scope.ts";
import { readIdempotencyKey } from "../http/idempotency-key.ts";
import { setRateLimitHeaders } from "../http/rate-limit-headers.ts";
import { readJson } from "../http/read-json.ts";

/** POST /v1/serp/search: identity, then the request, then the search itself. */
export function handleSearch(context: ApiContext, passGate: Admit) {
  return async (request: Request, response: Response) => {
    const { requestId, receivedAtMs, logFields: notes } = requestScopeOf(response);
    const gone = new AbortController();
    response.once("close", () => {
      if (!response.writableFinished) gone.abort();
    });

    const caller = await context.authenticate(request);
    notes.organizationId = caller.organizationId;
    const idempotencyKey = readIdempotencyKey(request);
    const query = readQuery(await readJson(request));
    const call = { requestId, receivedAtMs, caller, query, idempotencyKey, disconnected: gone.signal };
    const answer = await runSearch(context, passGate, call);

    Object.assign(notes, answerLogFields(answer));
    response.setHeader("X-Request-Id", answer.requestId);
    if (answer.replayed) response.setHeader("Idempotency-Replayed", "true");
    setRateLimitHeaders(response, caller.plan, answer.window);
    deliver(context, call, answer, request, response);
  };
}

/** What the log line tells of a search that was answered. */
export function answerLogFields({ requestId, replayed, chargedMils, trace }: DeliverableAnswer): LogFields {
  return {
    outcome: replayed ? "replayed" : "answered",
    ...(replayed && { answerOf: requestId }),
    chargedMils,
    ...trace,
  };
}
