import { type BalanceChange, correctCredit, creditRefusal, grantCredit } from "../../../../shared/credits/ledger.ts";
import type { LedgerCall } from "./ledger-call.ts";
import { balanceMessage } from "./model.ts";
import { type Changed, correctInModel, grantInModel } from "./postgres-model.ts";
import type { Message } from "./redis-model.ts";

/** Calls of Postgres that add credit or take it away. */

export function grantCall(grant: BalanceChange): LedgerCall {
  let granted: Changed = "refused";
  const isOfAnotherOrganization = (error: unknown) =>
    error instanceof Error && error.message.includes("one_entry_per_grant");
  return {
    kind: "grant",
    description: `grant ${grant.grantId}, ${grant.mils} mils to ${grant.organizationId}`,
    organizationIds: [grant.organizationId],
    predict: (postgres) => {
      granted = grantInModel(postgres, grant);
      return granted;
    },
    make: (database) =>
      grantCredit(database, grant).catch((error: unknown) => {
        if (isOfAnotherOrganization(error)) return "refused";
        throw error;
      }),
    apply: (model) => {
      const message: Message[] = granted === "refused" ? [] : [balanceMessage(grant.organizationId, granted)];
      model.messagesInFlight.push(...message);
    },
  };
}

export function correctCall(correction: BalanceChange): LedgerCall {
  const { organizationId, grantId, mils } = correction;
  let corrected: Changed = "refused";
  return {
    kind: "correct",
    description: `correct ${grantId}, ${mils} mils to ${organizationId}`,
    organizationIds: [organizationId],
    predict: (postgres) => {
      corrected = correctInModel(postgres, correction);
      return corrected;
    },
    make: (database) =>
      correctCredit(database, correction).catch((error: unknown) => {
        if (creditRefusal("correction", error) !== undefined) return "refused";
        throw error;
      }),
    apply: (model) => {
      if (corrected === "refused") return;
      model.messagesInFlight.push(balanceMessage(organizationId, corrected));
      if (!corrected.fresh || mils > 0) return;
      const before = model.creditTaken.get(organizationId)?.mils ?? 0;
      model.creditTaken.set(organizationId, { mils: before - mils, version: corrected.version });
    },
  };
}
