import type { Request, Response } from "express";
import { recordAudit } from "../../../shared/audit/audit.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import type { Log } from "../../../shared/log.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { hashToken, isTokenShaped } from "../../../shared/organizations/tokens.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import type { Brand } from "../../brand/brand.ts";
import type { PageSender } from "../../pages/page-sender.ts";
import { readForm } from "../../pages/read-form.ts";
import { rejectCrossOrigin } from "../session/csrf.ts";
import type { PageWindow } from "../session/page-window.ts";
import { readSignedIn } from "../session/require-session.ts";
import type { Sessions } from "../session/sessions.ts";
import { attemptsWindowSeconds, type SignInAttempts } from "../session/sign-in-attempts.ts";
import { scopeMissing, signInPage } from "./sign-in-page.ts";

/** POST /billing/sign-in: exchanges a token for a session. Every invalid token gets the same answer, and a valid one without
 * the scope `billing` one of its own. */
export function handleSignIn(parts: {
  sessions: Sessions;
  attempts: SignInAttempts;
  pageWindow: PageWindow;
  pages: PageSender;
  brand: Brand;
  database: Database;
  metrics: Pick<Metrics, "signIns">;
  publicUrl: string | undefined;
}) {
  const { sessions, attempts, pageWindow, pages, brand, database, metrics, publicUrl } = parts;
  return async (request: Request, response: Response) => {
    rejectCrossOrigin(request, publicUrl);
    const sendForm = (status: number, problem: string, next = overviewPath) =>
      pages.send(request, response, { status, title: "Sign in", body: signInPage(brand, { next, problem }) });

    if (!(await attempts.allow(request.ip))) {
      metrics.signIns.inc({ outcome: "limited" });
      response.setHeader("Retry-After", attemptsWindowSeconds);
      return sendForm(429, "Too many sign-in attempts from your network. Try again in a minute.");
    }
    const form = await readForm(request);
    const next = nextOf(form);
    const token = form.get("token")?.trim() ?? "";
    const tokenHash = hashToken(token).toString("hex");
    const caller = isTokenShaped(token)
      ? await sessions.callerOf({ tokenHash }, response)
      : new CallerError("unauthenticated");
    if (caller instanceof CallerError) {
      metrics.signIns.inc({ outcome: "refused" });
      requestScopeOf(response).logFields.outcome = "refused";
      response.setHeader("WWW-Authenticate", "Bearer");
      const isValid = caller.details.reason === "scope";
      const invalid = "This token is not valid. It may be mistyped, expired or revoked.";
      return sendForm(401, isValid ? scopeMissing : invalid, next);
    }
    // Bounds the sessions that one organization keeps in Redis, from however many networks.
    await pageWindow.take(caller);
    const refused = await attempts.takeOfCaller(caller);
    if (refused) {
      metrics.signIns.inc({ outcome: "limited" });
      response.setHeader("Retry-After", Math.ceil(refused.retryAfterMs / 1_000));
      return sendForm(429, tooManyToday[refused.of], next);
    }
    // First the entry: if the process dies in between, an entry stands for a session that was never used.
    await orPostgresUnavailable(recordSession(database, response, { action: "session.opened", caller }));
    metrics.signIns.inc({ outcome: "signed_in" });
    await sessions.open(request, response, { tokenHash, organizationId: caller.organizationId });
    response.writeHead(303, { Location: next }).end();
  };
}

const tooManyToday = {
  token: "This token has signed in too often today. Use another token, or try again tomorrow.",
  organization: "Your organization has signed in too often today. Try again tomorrow.",
};
const overviewPath = "/billing";
// A path of ours, with characters that mean nothing else: no other host, no line break.
const ownAddress = /^\/(?:billing|playground)(?:\/\w[\w.-]*)*(?:\?[\w.=&%+-]*)?$/;

/** Where the person wanted to go before the sign-in. An address that is none of ours leads to the overview. */
function nextOf(form: URLSearchParams): string {
  const next = form.get("next") ?? "";
  return ownAddress.test(next) ? next : overviewPath;
}

/** POST /billing/sign-out: ends the session, whether or not Postgres can record it. */
export function handleSignOut(parts: {
  sessions: Sessions;
  database: Database;
  log: Log;
  publicUrl: string | undefined;
}) {
  const { sessions, database, log, publicUrl } = parts;
  return async (request: Request, response: Response) => {
    rejectCrossOrigin(request, publicUrl);
    const signedIn = await readSignedIn(sessions, request, response, "idle").catch(() => undefined);
    const isEnded = await sessions.close(request, response);
    // A session has one entry of its end, however many requests end it.
    if (isEnded && signedIn && !(signedIn instanceof CallerError)) {
      await recordSession(database, response, { action: "session.closed", caller: signedIn.caller }).catch(
        (error: unknown) => log.warn({ err: error }, "a sign-out is missing in the audit trail"),
      );
    }
    response.writeHead(303, { Location: overviewPath }).end();
  };
}

function recordSession(
  database: Database,
  response: Response,
  { action, caller }: { action: "session.opened" | "session.closed"; caller: Caller },
): Promise<void> {
  const { requestId, address } = requestScopeOf(response);
  const { organizationId, tokenId } = caller;
  return recordAudit(database, { kind: "account", tokenId, address }, { action, organizationId, requestId });
}
