import type { Request, Response } from "express";
import { readQuery } from "../../shared/query/query.ts";
import { readIdempotencyKey } from "../http/request-headers.ts";
import { sendJson, setRateLimitHeaders } from "../http/send-json.ts";
import { readJson } from "../http/read-json.ts";
import { abortOnDisconnect, requestScopeOf } from "../http/request-scope.ts";
import type { Identify } from "../identify.ts";
import { answerLogFields, type Search } from "../search/search.ts";
import type { Delivery } from "../search/delivery.ts";
import { newSearchRequest } from "../search/search-request.ts";
import type { UnsentAnswers } from "../search/unsent-answers.ts";

/** What runs a search and sends its answer, for REST, MCP, the doors and the playground. */
export interface SearchParts {
  search: Pick<Search, "run">;
  delivery: Delivery;
  unsent: UnsentAnswers;
  searchTimeoutMs: number;
}

export interface SearchHandlerParts extends SearchParts {
  identify: Identify;
}

/** POST /v1/serp/search */
export function handleSearch(parts: SearchHandlerParts) {
  const { identify, search, delivery, unsent, searchTimeoutMs: timeoutMs } = parts;
  return async (request: Request, response: Response) => {
    const scope = requestScopeOf(response);
    const { requestId, logFields } = scope;
    const disconnected = abortOnDisconnect(response).signal;
    scope.search = {};
    const caller = await identify(request, response, "search");
    const idempotencyKey = readIdempotencyKey(request);
    scope.search = await scope.receiveBody(readJson(request));
    const query = readQuery(scope.search);

    const { deadlineStartsAtMs } = scope;
    const spans = scope.beginSpans();
    const sent = { requestId, deadlineStartsAtMs, timeoutMs, caller, query, idempotencyKey, disconnected, spans };
    const searchRequest = newSearchRequest(sent);
    const answer = await search.run(searchRequest);

    Object.assign(logFields, answerLogFields(answer));
    // The response finishes once all of it was handed to the socket.
    response.once("finish", delivery.begin(searchRequest, response, answer.payable));
    response.setHeader("X-Request-Id", answer.requestId);
    if (answer.replayed) response.setHeader("Idempotency-Replayed", "true");
    setRateLimitHeaders(response, caller.plan, answer.window);
    unsent.trackUnsent(caller.organizationId, response)(answer.body.length);
    sendJson(request, response, 200, answer.body);
  };
}
