import type { Request, Response } from "express";
import { readQuery } from "../../shared/query/query.ts";
import { readIdempotencyKey } from "../http/request-headers.ts";
import { sendJson, setRateLimitHeaders } from "../http/send-json.ts";
import { readJson } from "../http/read-json.ts";
import { abortOnDisconnect, type RequestScope, requestScopeOf } from "../http/request-scope.ts";
import type { Identify } from "../identify.ts";
import type { DeliverableAnswer, Search } from "../search/search.ts";
import type { Delivery } from "../search/delivery.ts";
import { newSearchRequest, type SearchRequest } from "../search/search-request.ts";
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

/** What a caller asks for, read from a request. */
export type AskedSearch = Pick<SearchRequest, "caller" | "query" | "disconnected"> & {
  idempotencyKey: string | undefined;
};

/** A search with its answer, which is to be sent now. */
export interface AnsweredSearch {
  searchRequest: SearchRequest;
  answer: DeliverableAnswer;
}

/** Runs the search of a request until its answer, which its log line shows. @throws like {@link Search.run}, {@link UnsentAnswers.check}. */
export async function runSearch(
  { search, unsent, searchTimeoutMs: timeoutMs }: SearchParts,
  scope: RequestScope,
  asked: AskedSearch,
): Promise<AnsweredSearch> {
  const { requestId, deadlineStartsAtMs } = scope;
  const spans = scope.beginSpans();
  const searchRequest = newSearchRequest({ ...asked, requestId, deadlineStartsAtMs, timeoutMs, spans });
  unsent.check(asked.caller);
  const answer = await search.run(searchRequest);
  // Replays do not count as searches in flight, so many of them may have been read at the same time.
  if (answer.replayed) unsent.check(asked.caller);
  const { replayed, chargedMils, trace } = answer;
  const outcome = replayed ? "replayed" : "answered";
  Object.assign(scope.logFields, { outcome, ...(replayed && { answerOf: answer.requestId }), chargedMils, ...trace });
  return { searchRequest, answer };
}

/** Sends an answer, by default as the worker wrote it, and begins its delivery: whatever is sent from then on counts as the answer. */
export function sendAnswer(
  { delivery, unsent }: SearchParts,
  request: Request,
  response: Response,
  { searchRequest, answer }: AnsweredSearch,
  body = answer.body,
): void {
  const { plan, organizationId } = searchRequest.caller;
  // The response finishes once all of it was handed to the socket.
  response.once("finish", delivery.begin(searchRequest, response, answer.payable));
  response.setHeader("X-Request-Id", answer.requestId);
  if (answer.replayed) response.setHeader("Idempotency-Replayed", "true");
  setRateLimitHeaders(response, plan, answer.window);
  unsent.trackUnsent(organizationId, response)(body.length);
  sendJson(request, response, 200, body);
}

/** POST /v1/serp/search */
export function handleSearch(parts: SearchHandlerParts) {
  return async (request: Request, response: Response) => {
    const scope = requestScopeOf(response);
    const disconnected = abortOnDisconnect(response).signal;
    scope.search = {};
    const identify = () => parts.identify(request, response, "search");
    const [caller, body] = await scope.receive(identify, () => readJson(request));
    scope.search = body;
    const idempotencyKey = readIdempotencyKey(request);
    const query = readQuery(body);
    const asked = { caller, query, idempotencyKey, disconnected };
    sendAnswer(parts, request, response, await runSearch(parts, scope, asked));
  };
}
