import type { Request, Response } from "express";
import type { Metrics } from "../../../shared/metrics.ts";
import { hashToken, isTokenShaped } from "../../../shared/organizations/tokens.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import type { PageSender } from "../page-sender.ts";
import { readForm } from "../read-form.ts";
import { rejectCrossOrigin } from "../session/csrf.ts";
import type { PageWindow } from "../session/page-window.ts";
import type { Sessions } from "../session/sessions.ts";
import { attemptsWindowSeconds, type SignInAttempts } from "../session/sign-in-attempts.ts";
import { signInPage } from "../views/sign-in-page.ts";

/** POST /billing/sign-in: exchanges a token for a session. Every invalid token gets the same answer. */
export function handleSignIn(parts: {
  sessions: Sessions;
  attempts: SignInAttempts;
  pageWindow: PageWindow;
  pages: PageSender;
  metrics: Pick<Metrics, "signIns">;
  publicUrl: string | undefined;
}) {
  const { sessions, attempts, pageWindow, pages, metrics, publicUrl } = parts;
  return async (request: Request, response: Response) => {
    rejectCrossOrigin(request, publicUrl);
    const sendForm = (status: number, problem: string) =>
      pages.send(request, response, { status, title: "Sign in", body: signInPage(problem) });

    if (!(await attempts.allow(request.ip))) {
      metrics.signIns.inc({ outcome: "limited" });
      response.setHeader("Retry-After", attemptsWindowSeconds);
      return sendForm(429, "Too many sign-in attempts from your network. Try again in a minute.");
    }
    const token = (await readForm(request)).get("token")?.trim() ?? "";
    const tokenHash = hashToken(token).toString("hex");
    const caller = isTokenShaped(token) ? await sessions.callerOf({ tokenHash }) : undefined;
    if (!caller) {
      metrics.signIns.inc({ outcome: "refused" });
      requestScopeOf(response).logFields.outcome = "refused";
      response.setHeader("WWW-Authenticate", "Bearer");
      return sendForm(401, "This token is not valid. It may be mistyped, expired or revoked.");
    }
    requestScopeOf(response).logFields.organizationId = caller.organizationId;
    // Bounds the sessions that one organization keeps in Redis, from however many networks.
    await pageWindow.take(caller);
    metrics.signIns.inc({ outcome: "signed_in" });
    await sessions.open(request, response, tokenHash);
    response.writeHead(303, { Location: "/billing" }).end();
  };
}

/** POST /billing/sign-out: ends the session. */
export function handleSignOut({ sessions, publicUrl }: { sessions: Sessions; publicUrl: string | undefined }) {
  return async (request: Request, response: Response) => {
    rejectCrossOrigin(request, publicUrl);
    await sessions.close(request, response);
    response.writeHead(303, { Location: "/billing" }).end();
  };
}
