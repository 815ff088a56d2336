import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { isTopupOf } from "../../../shared/topups/list-topups.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import type { Topups } from "../../topups/topups.ts";
import type { AccountRequest } from "../frame/account-handlers.ts";

const grantIds = /^(cs|pi)_\w{1,250}$/;

/** GET /billing/receipts/:grant: leads the browser to Stripe's receipt of a top-up of this organization. */
export function sendToReceipt({ database, topups }: { database: Database; topups: Topups }) {
  return async ({ request, response, caller }: AccountRequest): Promise<void> => {
    const grantId = request.params["grant"];
    if (typeof grantId !== "string" || !grantIds.test(grantId)) throw new CallerError("not_found");
    const isOwn = await orPostgresUnavailable(isTopupOf(database, caller.organizationId, grantId));
    if (!isOwn) throw new CallerError("not_found");
    const { url } = await topups.findReceipt(grantId);
    response.writeHead(303, { Location: url }).end();
  };
}
