import { requestScopeOf } from "../../http/request-scope.ts";
import type { Topups } from "../../topups/topups.ts";
import type { FormRequest } from "../frame/account-handlers.ts";

/** POST /billing/topup: redirects the browser to the payment page. The credit arrives with Stripe's webhook. */
export function beginTopUp({ topups }: { topups: Topups }) {
  return async ({ response, caller, form, name }: FormRequest) => {
    const { organizationId } = caller;
    const mils = Number(form.get("mils"));
    const { url } = await topups.begin({ organizationId, organizationName: name, mils, returnPath: "/billing" });
    requestScopeOf(response).logFields.outcome = "payment_begun";
    response.writeHead(303, { Location: url }).end();
  };
}
