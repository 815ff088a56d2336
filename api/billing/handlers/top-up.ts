import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import type { Topups } from "../../topups/topups.ts";
import { readForm } from "../read-form.ts";
import type { AccountReads } from "../reads/load-account.ts";
import { rejectCrossOrigin } from "../session/csrf.ts";
import type { PageWindow } from "../session/page-window.ts";
import { requireSession } from "../session/require-session.ts";
import type { Sessions } from "../session/sessions.ts";

/** POST /billing/topup: redirects the browser to the payment page. The credit arrives with Stripe's webhook. */
export function handleTopUp(parts: {
  sessions: Sessions;
  pageWindow: PageWindow;
  reads: AccountReads;
  topups: Topups | undefined;
  publicUrl: string | undefined;
}) {
  const { sessions, pageWindow, reads, topups, publicUrl } = parts;
  return async (request: Request, response: Response) => {
    if (!topups) throw new CallerError("not_found");
    rejectCrossOrigin(request, publicUrl);
    const { caller } = await requireSession(sessions, request, response);
    const form = await readForm(request);
    const { organizationId } = caller;
    // The browser's session may have become another one since the page was opened, even one that an attacker planted.
    if (form.get("organization") !== organizationId)
      throw new CallerError("bad_request", { reason: "other_organization" });
    // As a page view does, so that a script cannot begin payments without limit.
    await pageWindow.take(caller);
    const organizationName = await reads.readName(caller);
    const mils = Number(form.get("mils"));
    const { url } = await topups.begin({ organizationId, organizationName, mils, returnPath: "/billing" });
    requestScopeOf(response).logFields.outcome = "payment_begun";
    response.writeHead(303, { Location: url }).end();
  };
}
