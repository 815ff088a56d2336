import type { Request, Response } from "express";
import { type CallerError, type ErrorCode, errors } from "../../shared/errors.ts";
import { recordError } from "../errors.ts";
import { requestScopeOf } from "../http/request-scope.ts";
import { retryAfterSeconds } from "../http/send-error.ts";
import type { Billing } from "./billing.ts";
import { messagePage } from "./views/message-page.ts";
import { sendPage } from "./send-page.ts";

const paths = /^\/billing($|\/)/;

/** Whether a path belongs to this door, whose errors are pages. */
export const isBillingPath = (path: string) => paths.test(path);

const words: Partial<Record<ErrorCode, [title: string, says: string]>> = {
  bad_request: ["This did not work", "The request was not one of this page's own. Go back to the page and try again."],
  unauthenticated: ["You are signed out", "Sign in again to go on."],
  not_found: ["There is nothing here", "The address may be old or mistyped."],
  method_not_allowed: ["There is nothing to see here", "This address only takes what forms of the page send."],
  rate_limited: [
    "Too many requests",
    "Your organization's requests of this moment are used up, and the page counts as one of them; or a download of it is " +
      "still under way. The page comes back by itself.",
  ],
  unavailable: ["Back in a moment", "A part of the service does not answer right now. The page tries again by itself."],
};
const defect: [title: string, says: string] = [
  "Something went wrong",
  "It is our fault, it was noted, and nothing was charged. Please try again.",
];

/** Answers with an error as a page. What passes by itself is asked for again by itself. */
export function sendErrorPage(billing: Billing, request: Request, response: Response, error: CallerError): void {
  const { requestId } = requestScopeOf(response);
  recordError(response, error);
  const seconds = retryAfterSeconds(error);
  if (seconds !== undefined) response.setHeader("Retry-After", seconds);
  const [title, says] = words[error.code] ?? defect;
  // A person reads a page for some seconds at least, and a service that comes back is not to be stormed.
  const againAfterSeconds = seconds === undefined ? undefined : Math.max(5, seconds);
  const { status } = errors[error.code];
  sendPage(billing, request, response, {
    status,
    title,
    body: messagePage({ title, says, requestId }),
    againAfterSeconds,
  });
}
