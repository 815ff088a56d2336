import { searchPriceMils } from "../../shared/credits/plans.ts";
import { issuesIn } from "../../shared/errors/error-messages.ts";
import { CallerError, errorBody, type ErrorDetails, errors } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { organicPerPage } from "../../shared/query/depth.ts";
import { type Query, queryFingerprint, readQuery } from "../../shared/query/query.ts";
import { type AccountView, organizationField } from "../billing/frame/account-frame.ts";
import type { AccountHandlers, FormRequest, PageRequest } from "../billing/frame/account-handlers.ts";
import { searchAddress } from "../billing/searches/history.ts";
import { onlyTokenOf } from "../billing/session/sessions.ts";
import {
  answerLink,
  answerTabs,
  answerViews,
  resultsPage,
  shownBytesMax,
  type ShownElement,
} from "../billing/searches/answer-view.ts";
import { recordError } from "../errors.ts";
import { isIdempotencyKey } from "../http/request-headers.ts";
import { abortOnDisconnect, requestScopeOf } from "../http/request-scope.ts";
import { retryAfterSeconds } from "../http/send-error.ts";
import { sendJson } from "../http/send-json.ts";
import { requireScope } from "../identify.ts";
import { amount, dollars, plural } from "../pages/format.ts";
import { html, type Html } from "../pages/html.ts";
import {
  codeSamples,
  formAddress,
  type FormLook,
  readSample,
  requestBodyOf,
  searchFields,
  unfolded,
} from "./search-form.ts";
import type { SessionSearch, SessionSearches } from "./session-searches.ts";
import type { CancelSearch } from "../search/cancel-search.ts";
import { runSearch, type SearchParts } from "../v1/search.ts";

export interface PlaygroundParts extends SearchParts {
  cancelSearch: CancelSearch;
}

interface PageParts {
  sessionSearches: SessionSearches;
}

/** GET /playground: the form. Its fields may be in the address, so that a search can be shared. */
export async function showPlayground({ sessionSearches }: PageParts, asked: PageRequest): Promise<AccountView> {
  const { request, response, caller } = asked;
  const typed = new URLSearchParams(URL.parse(request.originalUrl, "http://playground")?.search);
  return view(caller, {
    typed,
    address: requestScopeOf(response).origin,
    look: { hasFocus: true, isOpen: false },
    outcome: firstSteps(),
    searches: await sessionSearches.read(asked),
  });
}

/**
 * POST /playground/search: runs a search like `POST /v1/serp/search`, with its admission, hold, charge and delivery. The form has an
 * idempotency key, so a double click or a reload pays once. Another query from the same form is another search.
 */
export async function runPlayground(
  parts: PlaygroundParts & PageParts & { account: AccountHandlers },
  asked: FormRequest,
): Promise<void> {
  const { account, delivery, unsent, sessionSearches } = parts;
  const { response, caller, form } = asked;
  const scope = requestScopeOf(response);
  const disconnected = abortOnDisconnect(response).signal;
  const page = { typed: form, address: scope.origin, look: { hasFocus: false, isOpen: false } };
  const sentQuery = requestBodyOf(form);
  scope.search = sentQuery;
  try {
    requireScope(caller, "search");
    const { query, idempotencyKey } = readKeyedQuery(form);
    const search = { caller, query, idempotencyKey, disconnected };
    const { searchRequest, answer } = await runSearch(parts, scope, search);
    await sessionSearches.add(asked, answer.requestId);
    const searches = await sessionSearches.read(asked, { requestId: answer.requestId, query });
    // Rendered before the delivery begins, because whatever is sent from then on counts as the answer.
    const shown = view(caller, { ...page, outcome: answerView(answer.body, { query, idempotencyKey }), searches });
    response.once("finish", delivery.begin(searchRequest, response, answer.payable));
    response.setHeader("X-Request-Id", answer.requestId);
    unsent.trackUnsent(caller.organizationId, response)(answer.body.length);
    account.send(asked, 200, shown);
  } catch (error) {
    if (!(error instanceof CallerError)) throw error;
    recordError(response, error);
    const retrySeconds = retryAfterSeconds(error);
    if (retrySeconds !== undefined) response.setHeader("Retry-After", retrySeconds);
    const searches = await sessionSearches.read(asked);
    const look = { hasFocus: false, isOpen: issuesIn(error.details).some(({ path }) => !unfolded.includes(path)) };
    const outcome = errorView(scope.requestId, error, caller);
    // The search may be charged although its answer did not come: to search again is to repeat it.
    const key = errors[error.code].retry ? form.get("key") : null;
    const shown = view(caller, { ...page, look, outcome, searches, key });
    account.send(asked, errors[error.code].status, shown);
  }
}

/**
 * POST /playground/cancel: cancels the search of a form that was sent with the same fields. The page's script asks, and gets JSON: how
 * it ended, and after a charge the address of the answer.
 */
export async function cancelPlayground(
  { cancelSearch, searchTimeoutMs: timeoutMs }: PlaygroundParts,
  { request, response, caller, form }: FormRequest,
): Promise<void> {
  requireScope(caller, "search");
  const ended = await cancelSearch({ ...readKeyedQuery(form), caller, timeoutMs });
  const address = ended.outcome === "charged" ? searchAddress(ended.requestId) : undefined;
  sendJson(request, response, 200, JSON.stringify({ outcome: ended.outcome, address }));
}

const keyCharactersMax = 64;

/** The query of a form with the key of both: another query from the same form is another search. */
function readKeyedQuery(form: URLSearchParams): { query: Query; idempotencyKey: string } {
  const query = readQuery(requestBodyOf(form));
  const key = form.get("key") ?? "";
  if (isIdempotencyKey(key) && key.length <= keyCharactersMax)
    return { query, idempotencyKey: `${key}.${queryFingerprint(query)}` };
  throw new CallerError("bad_request", { issues: [{ path: "key", message: "Expected the key of the form." }] });
}

/** The content of the page. `outcome` is the answer, the error, or the first steps. */
interface Shown {
  /** The fields of the form. */
  typed: URLSearchParams;
  look: FormLook;
  address: string;
  outcome: Outcome;
  searches: readonly SessionSearch[];
  /** The key of the search that the form repeats. */
  key?: string | null;
}

function view({ organizationId, plan }: Caller, { typed, look, address, outcome, searches, key }: Shown): AccountView {
  const depth = Number(typed.get("depth")) || organicPerPage;
  const perPage = plan.pricePerPageMils ?? 0;
  const body = html`<div class="playground">
<form id="search" class="panel" method="post" action="/playground/search">${organizationField(organizationId)}
<input type="hidden" name="key" value="${key ?? newId("req")}">
${searchFields(typed, plan, look)}
<div class="below"><p class="aside"><strong id="price" data-per-page="${perPage}">${dollars(searchPriceMils(plan, { depth }))}</strong> per answer. Errors and reloads cost nothing.</p>
<p><span id="pending" role="status"></span> <span id="elapsed" aria-hidden="true"></span> <button type="button" id="cancel" class="plain" hidden>Cancel</button></p></div>
${sessionList(searches)}
</form>
${outcomePanel(outcome, codeSamples(address, requestBodyOf(typed), readSample(typed)))}
</div>`;
  return { path: "/playground", title: "Playground", body };
}

/** What the page shows below the form: first steps, an error or an answer. */
interface Outcome {
  title: string;
  /** Below the heading. */
  facts?: Html;
  page: Html;
  json?: string | undefined;
  /** Whether a search led to it. */
  isEnd: boolean;
}

/** The heading of what a search led to has the focus, so that a screen reader begins there, with or without a script. */
export function outcomePanel({ title, facts, page, json, isEnd }: Outcome, code: Html): Html {
  const views = { page, json, code };
  return html`<section class="panel answer"${isEnd && html` id="answer"`} aria-labelledby="answer-title">
<div class="head"><h2 id="answer-title" tabindex="-1"${isEnd && html` autofocus`}>${title}</h2>${answerTabs(views)}</div>
${facts && html`<p class="aside">${facts}</p>`}
${answerViews(views)}</section>`;
}

/** The searches of the session. Each links to its page, and back to the form. */
function sessionList(searches: readonly SessionSearch[]): Html | false {
  if (searches.length === 0) return false;
  return html`<details id="session"><summary>This session: ${plural(searches.length, "search", "searches")}</summary>
<ol class="recent">${searches.map(entry)}</ol></details>`;
}

function entry({ requestId, query }: SessionSearch): Html {
  if (!query) return html`<li><a href="${searchAddress(requestId)}">${requestId}</a></li>`;
  const { keyword, location, device, depth } = query;
  return html`<li><span><a href="${searchAddress(requestId)}">${keyword}</a>
<span class="aside">${location.replaceAll(",", ", ")} · ${device} · depth ${depth}</span></span>
<a class="again" href="${formAddress(query)}" aria-label="Edit: ${keyword}">Edit</a></li>`;
}

const examples = [
  { label: "best coffee beans", query: { keyword: "best coffee beans" } },
  {
    label: "bakery, in Munich, on a phone",
    query: { keyword: "bakery", location: "Munich, Germany", language: "German", device: "mobile" },
  },
  { label: "only the news on electric cars", query: { keyword: "electric cars", types: ["top_stories"] } },
];

/** Stands where the answer will be: example searches that fill the form. */
function firstSteps(): Outcome {
  const page = html`<p>As a results page, as JSON and as code. Examples to fill the form:</p>
<ul class="chips">${examples.map(({ label, query }) => html`<li><a href="${formAddress(query)}">${label}</a></li>`)}</ul>`;
  return { title: "The answer appears here", page, isEnd: false };
}

/** Why a search was not answered, in words and as the error that the API sends. */
function errorView(requestId: string, { code, message, details }: CallerError, caller: Caller): Outcome {
  const page = html`<div class="notice warning" role="alert"><p>${message}</p>${issueList(details)}</div>
${code === "out_of_credits" && !onlyTokenOf(caller) && html`<p><a class="button" href="/billing">Go to your credit</a></p>`}`;
  const facts = html`<code>${errors[code].status} ${code}</code>`;
  const json = JSON.stringify(errorBody(requestId, code, details), undefined, 2);
  return { title: "No answer", facts, page, json, isEnd: true };
}

/** The refused fields, if there are several: the message names only the first. */
function issueList(details: ErrorDetails): Html | false {
  const listed = issuesIn(details);
  return (
    listed.length > 1 &&
    html`<ul>${listed.map(({ path, message }) => html`<li><code>${path}</code> ${message}</li>`)}</ul>`
  );
}

/**
 * The answer as a page of results and as JSON.
 * @param asked.idempotencyKey the key under which a repeat is free.
 */
export function answerView(body: Buffer, { query, idempotencyKey }: { query: Query; idempotencyKey: string }): Outcome {
  if (body.length > shownBytesMax) return { title: "Answer", page: largeAnswer(idempotencyKey), isEnd: true };
  const answer: { requestId: string; creditsCharged: number; results: ShownElement[] } = JSON.parse(body.toString());
  const { results, creditsCharged, requestId } = answer;
  const elements = plural(results.length, "element");
  return {
    title: "Answer",
    facts: html`${elements} for ${amount(creditsCharged)}, ${answerLink(searchAddress(requestId), requestId)}`,
    page:
      results.length > 0
        ? resultsPage(results, (keyword) => formAddress({ ...query, keyword }))
        : html`<p class="serp">No results.</p>`,
    json: JSON.stringify(answer, undefined, 2),
    isEnd: true,
  };
}

const largeAnswer = (idempotencyKey: string) =>
  html`<p>The answer is too large for this page. To get it, repeat the search with the header <code>Idempotency-Key: ${idempotencyKey}</code>: for 24 hours a repeat costs nothing.</p>`;
