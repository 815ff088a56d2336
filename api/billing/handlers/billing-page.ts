import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import type { PageSender } from "../page-sender.ts";
import { readHistoryView } from "../reads/history-view.ts";
import type { AccountReads } from "../reads/load-account.ts";
import { isCrossSiteNavigation } from "../session/csrf.ts";
import type { PageWindow } from "../session/page-window.ts";
import { readSignedIn } from "../session/require-session.ts";
import type { Sessions } from "../session/sessions.ts";
import { accountPage } from "../views/account-page.ts";
import type { AddCredit } from "../views/add-credit-section.ts";
import { reloadPage } from "../views/reload-page.ts";
import { scopeMissing, signInPage } from "../views/sign-in-page.ts";

/** GET /billing: the account, or the sign-in form. */
export function handleBillingPage(parts: {
  sessions: Sessions;
  pageWindow: PageWindow;
  reads: AccountReads;
  pages: PageSender;
  addCredit: AddCredit;
}) {
  const { sessions, pageWindow, reads, pages, addCredit } = parts;
  return async (request: Request, response: Response) => {
    const cookies = sessions.countCookies(request);
    if (cookies === 0 && isCrossSiteNavigation(request)) return reload(pages, request, response);
    const signedIn = await readSignedIn(sessions, request, response);
    if (signedIn instanceof CallerError) {
      const body = signInPage(problemOf(cookies, signedIn));
      return pages.send(request, response, { status: 200, title: "Sign in", body });
    }
    const view = readHistoryView(request);
    await pageWindow.take(signedIn.caller);
    const credit = await reads.readCredit(signedIn.caller);
    const account = await reads.readAccount(credit, view);
    const { topup } = request.query;
    const payment = topup === "paid" || topup === "cancelled" ? topup : undefined;
    const body = accountPage(account, addCredit, { payment });
    pages.send(request, response, { status: 200, title: "Billing", body });
  };
}

/**
 * A browser that follows a link from another site, such as Stripe's checkout, withholds a SameSite=Strict cookie. A page of
 * ours that loads itself again is a same-site navigation, with the cookie.
 */
function reload(pages: PageSender, request: Request, response: Response): void {
  // The request line may hold an absolute URL instead of a path, and an invalid one.
  const target = `/billing${URL.parse(request.originalUrl, "http://billing")?.search ?? ""}`;
  response.setHeader("Refresh", `0; url=${target}`);
  pages.send(request, response, { status: 200, title: "Billing", body: reloadPage(target) });
}

/** Why a browser with this many session cookies is not signed in; undefined for one that never was. */
function problemOf(cookies: number, { details }: CallerError): string | undefined {
  if (cookies === 0) return undefined;
  if (details.reason === "scope") return scopeMissing;
  return cookies === 1
    ? "Your session has ended. Sign in again."
    : "Your browser sent more than one session, so none was used. Delete the cookies of this site, then sign in again.";
}
