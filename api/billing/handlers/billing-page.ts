import type { Request, Response } from "express";
import { z } from "zod";
import { CallerError } from "../../../shared/errors.ts";
import { historyFilters } from "../../../shared/credits/history.ts";
import { setRateLimitHeaders } from "../../http/rate-limit-headers.ts";
import { readAccount, readCredit, type View } from "../reads/load-account.ts";
import { accountPage } from "../views/account-page.ts";
import type { Billing } from "../billing.ts";
import { html } from "../views/html.ts";
import { isCrossSiteNavigation } from "../session/csrf.ts";
import { sendPage } from "../send-page.ts";
import { hasCookie } from "../session/sessions.ts";
import { signInPage } from "../views/sign-in-page.ts";
import { readSignedIn } from "../session/require-session.ts";

const viewQuery = z.object({
  show: z.enum(historyFilters).default("all"),
  before: z
    .string()
    .regex(/^[1-9]\d{0,15}$/)
    .transform(Number)
    .refine(Number.isSafeInteger)
    .optional(),
});

/** GET /billing: the account for one request of the organization's window; or the form to sign in. */
export function handleBillingPage(billing: Billing) {
  const { context } = billing;
  return async (request: Request, response: Response) => {
    const hadCookie = hasCookie(context, request);
    if (!hadCookie && isCrossSiteNavigation(request)) return sendAgain(billing, request, response);
    const signedIn = await readSignedIn(context, request, response);
    if (!signedIn) {
      const body = signInPage(hadCookie ? "Your session has ended. Sign in again." : undefined);
      return sendPage(billing, request, response, { status: 200, title: "Sign in", body });
    }
    const view = readView(request);
    const credit = await readCredit(context, signedIn.caller);
    setRateLimitHeaders(response, signedIn.caller.plan, credit.window);
    const account = await readAccount(context, credit, view);
    const body = accountPage(billing, account, request.query.topup === "paid" ? "paid" : undefined);
    sendPage(billing, request, response, { status: 200, title: "Billing", body });
  };
}

/** @throws {CallerError} `not_found` for a view that there is not. */
export function readView(request: Request): View {
  const read = viewQuery.safeParse(request.query);
  if (!read.success) throw new CallerError("not_found");
  return { filter: read.data.show, before: read.data.before };
}

/**
 * Behind a link of another site, the checkout's among them, a browser keeps a SameSite=Strict cookie back. A page of ours
 * that goes on to itself is no other site any more.
 */
function sendAgain(billing: Billing, request: Request, response: Response): void {
  // A request may name a whole address in place of a path, and one that is none.
  const target = `/billing${URL.parse(request.originalUrl, "http://billing")?.search ?? ""}`;
  const body = html`<main class="narrow"><p><a href="${target}">Go on to the billing page</a></p></main>`;
  response.setHeader("Refresh", `0; url=${target}`);
  sendPage(billing, request, response, { status: 200, title: "Billing", body });
}
