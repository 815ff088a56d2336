import type { Request, Response } from "express";
import { readQuery } from "../../shared/query/query.ts";
import type { Authenticate } from "../authenticate.ts";
import { readIdempotencyKey } from "../http/idempotency-key.ts";
import { setRateLimitHeaders } from "../http/rate-limit-headers.ts";
import { readJson } from "../http/read-json.ts";
import { abortOnDisconnect, requestScopeOf } from "../http/request-scope.ts";
import { sendJson } from "../http/send-json.ts";
import { answerLogFields } from "../search/deliverable-answer.ts";
import type { Delivery } from "../search/delivery.ts";
import type { Search } from "../search/search.ts";
import { newSearchRequest } from "../search/search-request.ts";

export interface SearchHandlerParts {
  authenticate: Authenticate;
  search: Pick<Search, "run">;
  delivery: Delivery;
  searchTimeoutMs: number;
}

/** POST /v1/serp/search */
export function handleSearch({ authenticate, search, delivery, searchTimeoutMs: timeoutMs }: SearchHandlerParts) {
  return async (request: Request, response: Response) => {
    const { requestId, receivedAtMs, logFields } = requestScopeOf(response);
    const disconnected = abortOnDisconnect(response).signal;
    const caller = await authenticate(request);
    logFields.organizationId = caller.organizationId;
    const idempotencyKey = readIdempotencyKey(request);
    const query = readQuery(await readJson(request));

    const sent = { requestId, receivedAtMs, timeoutMs, caller, query, idempotencyKey, disconnected };
    const searchRequest = newSearchRequest(sent);
    const answer = await search.run(searchRequest);

    Object.assign(logFields, answerLogFields(answer));
    // The response finishes once all of it was handed to the socket.
    response.once("finish", delivery.begin(searchRequest, response));
    response.setHeader("X-Request-Id", answer.requestId);
    if (answer.replayed) response.setHeader("Idempotency-Replayed", "true");
    setRateLimitHeaders(response, caller.plan, answer.window);
    sendJson(request, response, 200, answer.body);
  };
}
