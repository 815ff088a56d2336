import { countCharges, isStanding, readAccounts } from "../../faults/audit/accounts.ts";
import { ledgerViolations } from "../../faults/audit/audit.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { AttackStack } from "../attack-stack.ts";
import type { Finding } from "../attack.ts";

/** Compares the answers that an attacker has with what the attacker paid, once all is at rest. */
export async function judgeAnswers(
  { service }: AttackStack,
  attacker: Organization,
  copies: ReadonlySet<string>,
): Promise<Finding> {
  await service.rest();
  const { byRequest } = await readAccounts(service.database, [attacker.organizationId]);
  const isPaid = (requestId: string) => {
    const account = byRequest.get(requestId);
    return account !== undefined && isStanding(account);
  };
  const free = [...copies].filter((requestId) => !isPaid(requestId));
  const mils = [...byRequest.values()].filter(isStanding).reduce((sum, account) => sum - account.mils, 0);
  const violations = await ledgerViolations(service);
  const reasons = [...new Set(free.map((requestId) => byRequest.get(requestId)?.reversedFor ?? "no charge"))];
  return {
    promised: "no answer that arrived is free",
    seen: [
      `${copies.size} whole answers, ${mils} mils, ${free.length} free${reasons.length > 0 ? ` (${reasons.join(", ")})` : ""}`,
      ...violations,
    ].join("; "),
    held: free.length === 0 && violations.length === 0,
  };
}

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
