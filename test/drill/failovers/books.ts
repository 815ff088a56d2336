import type { Database } from "../../../shared/database/pool.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { type Accounts, readAccounts, isStanding } from "../../faults/audit/accounts.ts";
import { audit, ledgerViolations } from "../../faults/audit/audit.ts";
import { wrongBalances } from "../../faults/audit/balances.ts";
import { auditedApi, type Evidence, priceMils } from "../../faults/audit/evidence.ts";
import { untilAtRest } from "../../faults/audit/rest.ts";
import { listOpenGaps } from "../../../shared/credits/ledger-gaps.ts";
import type { FailoverResult } from "./failover.ts";
import type { FailoverStack } from "./stores.ts";
import { deadlineMs, lateMsMax } from "./searches.ts";

const gapsMax = 1_000;
const confirmMsMax = 10_000;
/** The reconciler compares every copy in this time. */
const namedMsMax = 90_000;

type Books = Pick<FailoverResult, "lostMils" | "namedMils" | "broken">;

/**
 * Compares each answer that a caller got with the ledger, once all is at rest. Searches under keys are repeated until they are
 * answered, since what they paid for is owed.
 * @param losesEntries whether Postgres may have lost entries, which the service then has to name.
 */
export async function compareBooks(stack: FailoverStack, losesEntries: boolean): Promise<Books> {
  // The service reports each gap, by `ledger verify` and in its log.
  const isOfGap = (sentence: string) => losesEntries && /Postgres lost (no )?entries/.test(sentence);
  const { service, searches, searchers, apis, provider } = stack;
  const attempts = [...searches.attempts, ...(await searches.repeatKeys())];
  const unanswered = attempts.slice(searches.attempts.length).filter(({ answer }) => answer?.status !== 200);
  const organizationIds = searchers.map(({ organizationId }) => organizationId);
  await untilAtRest(service, organizationIds, confirmMsMax);

  const accounts = await readAccounts(service.database, organizationIds);
  const answers = new Set(attempts.flatMap(({ answer }) => (answer?.status === 200 ? answer.requestId : [])));
  const isLost = (requestId = "") => {
    const account = accounts.byRequest.get(requestId);
    return answers.has(requestId) && !(account && isStanding(account));
  };
  const lost = [...answers].filter(isLost);
  const evidence: Evidence = {
    accounts,
    // What was lost is counted, and has no account with which it could be compared.
    attempts: losesEntries ? attempts.filter(({ answer }) => !isLost(answer?.requestId)) : attempts,
    apis: [auditedApi(apis[0]), auditedApi(apis[1])],
    providerCalls: provider.calls,
    answerMsMax: deadlineMs + lateMsMax,
  };
  const lostMils = lost.length * priceMils;
  const namedMils = () => readNamedMils(service.database, accounts);
  if (losesEntries) await becomes(async () => (await namedMils()) >= lostMils, namedMsMax);
  const urls = apis.flatMap(({ url }) => url ?? []);
  const violations = await ledgerViolations(service);
  return {
    lostMils,
    namedMils: await namedMils(),
    broken: [
      ...audit(evidence),
      ...unanswered.map(({ keyword, answer }) => `"${keyword}" repeated under its key: ${answer?.text ?? "no answer"}`),
      ...(await wrongBalances(service, searchers, accounts, urls)),
      ...violations.filter((sentence) => !isOfGap(sentence)),
      ...[...apis, ...stack.workers].flatMap((process) => process.defects()).filter((defect) => !isOfGap(defect)),
    ],
  };
}

/** The mils that the service reports: open gaps, and charges that it reversed because it lost their confirmation. */
async function readNamedMils(database: Database, { byRequest }: Accounts): Promise<number> {
  const gaps = await listOpenGaps(database, gapsMax);
  const unconfirmed = [...byRequest.values()].filter(({ reversedFor }) => reversedFor === "undelivered");
  return gaps.reduce((sum, { mils }) => sum + mils, 0) - unconfirmed.reduce((sum, { mils }) => sum + mils, 0);
}
