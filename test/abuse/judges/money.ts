import { countCharges } from "../../faults/audit/accounts.ts";
import { ledgerViolations } from "../../faults/audit/audit.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { AttackStack } from "../attack-stack.ts";
import type { Finding } from "../attack.ts";

/** Whether these organizations paid for each of their answers once and for nothing else, and the ledger is right. */
export async function judgeCharges(
  { service }: AttackStack,
  organizations: readonly Organization[],
  answered: number,
): Promise<Finding> {
  await service.rest();
  const charges = await countCharges(service.database, ...organizations.map(({ organizationId }) => organizationId));
  const violations = await ledgerViolations(service);
  return {
    promised: "each answer is charged once, nothing else is, and the ledger is right",
    seen: [`${charges} charges for ${answered} answers`, ...violations].join("; "),
    held: charges === answered && violations.length === 0,
  };
}
