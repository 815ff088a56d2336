import type { Request, Response } from "express";
import { CallerError } from "../../shared/errors.ts";
import { exchangeOf } from "../http/exchange.ts";
import { readCredit } from "./account.ts";
import type { Billing } from "./billing.ts";
import { refuseForeign } from "./own-origin.ts";
import { readForm } from "./read-form.ts";
import { requireSession } from "./signed-in.ts";

/** POST /billing/topup: sends the browser to where it pays. The credit comes with the payment provider's own message. */
export function answerTopUp({ context }: Billing) {
  return async (request: Request, response: Response) => {
    const { topups } = context;
    if (!topups) throw new CallerError("not_found");
    refuseForeign(context, request);
    const { caller } = await requireSession(context, request, response);
    const mils = Number((await readForm(request)).get("mils"));
    // It takes a request of the window, as a view of the page does, so that nobody begins payments without end.
    await readCredit(context, caller);
    const { url } = await topups.begin({ organizationId: caller.organizationId, mils, returnPath: "/billing" });
    exchangeOf(response).notes.outcome = "payment_begun";
    response.writeHead(303, { Location: url }).end();
  };
}
