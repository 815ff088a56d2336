import type { Request, Response } from "express";
import { CallerError } from "../../../shared/errors.ts";
import { requestScopeOf } from "../../http/request-scope.ts";
import { readCredit } from "../reads/load-account.ts";
import type { Billing } from "../billing.ts";
import { rejectCrossOrigin } from "../session/csrf.ts";
import { readForm } from "./read-form.ts";
import { requireSession } from "../session/require-session.ts";

/** POST /billing/topup: sends the browser to where it pays. The credit comes with the payment provider's own message. */
export function handleTopUp({ context }: Billing) {
  return async (request: Request, response: Response) => {
    const { topups } = context;
    if (!topups) throw new CallerError("not_found");
    rejectCrossOrigin(context, request);
    const { caller } = await requireSession(context, request, response);
    const mils = Number((await readForm(request)).get("mils"));
    // It takes a request of the window, as a view of the page does, so that nobody begins payments without end.
    await readCredit(context, caller);
    const { url } = await topups.begin({ organizationId: caller.organizationId, mils, returnPath: "/billing" });
    requestScopeOf(response).logFields.outcome = "payment_begun";
    response.writeHead(303, { Location: url }).end();
  };
}
