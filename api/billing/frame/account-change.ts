import { countChanges } from "../../../shared/audit/audit.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { inTransaction, type Querying } from "../../../shared/database/transaction.ts";
import { CallerError } from "../../../shared/errors.ts";
import { lockAccount } from "../../../shared/organizations/organizations.ts";
import type { Changer } from "../../webhooks/audited-changes.ts";
import type { FormRequest } from "./account-handlers.ts";
import { orPostgresUnavailable } from "../../datastore-unavailable.ts";
import { requestScopeOf } from "../../http/request-scope.ts";

/** Each change stays in the audit trail for ever, so an account must not make them without limit. */
const changesPerDayMax = 200;
const retryAfterMs = 3_600_000;

/**
 * Makes a change of an account with its entry in the audit trail, in one transaction.
 * @throws {CallerError} `rate_limited`, reason `changes`, after 200 changes in 24 hours; `unavailable` without Postgres.
 */
export async function changeAccount<Result>(
  database: Database,
  { response, caller: { organizationId, tokenId } }: FormRequest,
  change: (transaction: Querying, changer: Changer) => Promise<Result>,
): Promise<Result> {
  const { requestId, address } = requestScopeOf(response);
  const work = inTransaction(database, async (transaction) => {
    // Changes at once are counted one after the other.
    await lockAccount(transaction, organizationId);
    if ((await countChanges(transaction, organizationId)) >= changesPerDayMax)
      throw new CallerError("rate_limited", { reason: "changes", limit: changesPerDayMax, retryAfterMs });
    return change(transaction, { actor: { kind: "account", tokenId, address }, organizationId, requestId });
  });
  return orPostgresUnavailable(work);
}
