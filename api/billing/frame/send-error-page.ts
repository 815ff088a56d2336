import type { Request, Response } from "express";
import { type CallerError, type ErrorCode, errors } from "../../../shared/errors.ts";
import { accountPages, narrowPage, otherPages, searchPages } from "./account-frame.ts";
import { onlySearches, scopeMissing } from "../session/sign-in.ts";
import { recordError } from "../../errors.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { retryAfterSeconds } from "../../http/send-error.ts";
import { html } from "../../pages/html.ts";
import type { PageSender } from "../../pages/page-sender.ts";

const topUpPath = "/billing/topup";

const paths = /^\/(billing|playground)($|\/)/;

/** Whether the errors of a request are sent as pages: those of the account, and any address that a browser opened and that is unknown. */
export const wantsErrorPage = ({ path, method, headers }: Request, { code }: CallerError): boolean =>
  paths.test(path) || (code === "not_found" && method === "GET" && headers.accept?.includes("text/html") === true);

// A person needs some seconds to read the page, and a service that recovers must not be flooded with reloads.
const reloadAfterSecondsMin = 5;

/** Where a person goes on. The session of a token that may only search opens no other page than the first two. */
function wayOn({ path, headers }: Request) {
  if (path.startsWith("/playground")) {
    // The script of the playground keeps the fields of its form in the address, which may come from anywhere.
    const from = URL.parse(headers.referer ?? "");
    const fields = from?.pathname === "/playground" ? from.search : "";
    return { path: `/playground${fields}`, label: "Go to the playground" };
  }
  if (path.startsWith("/billing/searches")) return { path: "/billing/searches", label: "Go to your searches" };
  return { path: "/billing", label: "Go to your account" };
}

type Message = [title: string, text: string];

/** Messages for a `details.reason`. They take precedence over those for the code. */
const messagesOfReasons: Record<string, Message> = {
  scope: ["This token cannot open the account", scopeMissing],
  only_searches: ["This token cannot open this page", onlySearches],
  other_organization: [
    "Nothing was changed",
    "This page belongs to another organization than the one you are signed in to now. Check the name and ID of the " +
      "organization before you continue.",
  ],
  amount_not_offered: [
    "Nothing was changed",
    "This amount is no longer offered. Go to your account and choose another one.",
  ],
  no_receipt: [
    "There is no receipt",
    "Stripe has no receipt for this top-up. Your statements show the amount. For details, ask the operator of this service.",
  ],
  payments_unavailable: [
    "No answer from Stripe",
    "Stripe is not responding right now. Your payments and your credit have not changed. Try again in a few minutes.",
  ],
  card_unavailable: [
    "No card was saved",
    "Stripe is not responding right now. Nothing was charged, and your settings have not changed. Try again in a few minutes.",
  ],
  changes: [
    "Too many changes",
    "Nothing was changed: your organization has made 200 changes in the last 24 hours. Try again in a few hours.",
  ],
};

const messages: Partial<Record<ErrorCode, Message>> = {
  bad_request: [
    "That did not work",
    "The request did not come from a page of your account. Go back to the page and try again.",
  ],
  unauthenticated: ["You are signed out", "Sign in again to continue."],
  not_found: [
    "Page not found",
    "The address may be outdated or mistyped, or what it showed may be deleted by now or belong to another account. These pages exist:",
  ],
  method_not_allowed: ["Nothing to see here", "This address only accepts forms from your account."],
  rate_limited: [
    "Too many requests",
    "Your organization has loaded too many pages in the last minute, or has too many pages or downloads open.",
  ],
  unavailable: ["Back in a moment", "Part of the service is not responding right now."],
};
const defectMessage: Message = [
  "Something went wrong",
  "This is our fault. The error is logged, and nothing was charged. Please try again.",
];

/** Sends an error as a page. It reloads automatically if a retry can succeed, but not after the form of a payment: the person chooses again. */
export function sendErrorPage(pages: PageSender, request: Request, response: Response, error: CallerError): void {
  recordError(response, error);
  const retrySeconds = retryAfterSeconds(error);
  if (retrySeconds !== undefined) response.setHeader("Retry-After", retrySeconds);
  const isPayment = request.path === topUpPath && request.method === "POST";
  const reloads = retrySeconds !== undefined && !isPayment;
  const reloadAfterSeconds = Math.max(reloadAfterSecondsMin, retrySeconds ?? 0);
  const [title, text] = isPayment ? paymentMessage(error) : messageOf(error);
  const isUnknown = error.code === "not_found" && error.details.reason === undefined;
  const next = wayOn(request);
  const pagesThere = accountPages.filter(({ path }) => next.path === "/billing" || searchPages.has(path));
  pages.send(request, response, {
    status: errors[error.code].status,
    title,
    body: narrowPage(html`<h1>${title}</h1>
<p>${text}</p>
${reloads && html`<p>This page reloads automatically.</p>`}
${isUnknown && html`<ul>${[...pagesThere, ...otherPages].map(({ path, label }) => html`<li><a href="${path}">${label}</a></li>`)}</ul>`}
<p><a class="button" href="${next.path}">${next.label}</a></p>
<p class="aside">Request <code>${requestScopeOf(response).requestId}</code></p>`),
    // A form is not sent again.
    refresh: reloads ? `${reloadAfterSeconds}${request.method === "GET" ? "" : `; url=${next.path}`}` : undefined,
  });
}

const messageOf = ({ code, details }: CallerError): Message =>
  messagesOfReasons[String(details.reason)] ?? messages[code] ?? defectMessage;

/** The message for a payment that could not start. The browser was never sent to Stripe's page, so the person cannot have paid. */
function paymentMessage(error: CallerError): Message {
  const [title, text] = messageOf(error);
  return [
    error.code === "unauthenticated" ? title : "No payment was started",
    error.code === "internal_error" ? text : `Nothing was charged. ${text}`,
  ];
}
