import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { isStanding, readAccounts } from "../audit/accounts.ts";
import { audit, ledgerViolations, type Totals, totalsOf } from "../audit/audit.ts";
import { wrongBalances } from "../audit/balances.ts";
import { auditedApi, durationMs, type Evidence } from "../audit/evidence.ts";
import type { CaseRun } from "./case-run.ts";

// Only a case that fails waits this long.
const deathMsMax = 60_000;
const copyMsMax = 60_000;
const refusedMsMax = 60_000;

/**
 * Audits a case at rest: the ledger, and what the case itself expects.
 * @param lateMsMax how long after its deadline an answer may arrive.
 */
export async function auditCase(run: CaseRun, lateMsMax: number): Promise<{ broken: string[]; seen: string }> {
  const { stack, customer } = run;
  // One process may still have to die: the next maintenance leader, once the lease of the dead one has expired.
  await becomes(async () => run.deaths.length >= run.deathsDue, deathMsMax);
  await stack.untilReady();

  const evidence: Evidence = {
    accounts: await readAccounts(stack.service.database, [customer.organizationId]),
    attempts: run.attempts,
    apis: [auditedApi(stack.apis[0]), auditedApi(stack.apis[1])],
    providerCalls: stack.calls,
    answerMsMax: stack.deadlineMs + lateMsMax,
  };
  const totals = totalsOf(evidence);
  const urls = stack.apis.flatMap(({ url }) => url ?? []);
  const broken = [
    ...missingDeaths(run),
    ...audit(evidence),
    ...unexpectedOutcome(run, evidence),
    ...(run.case.keyed ? await unfetchedKey(run) : []),
    ...(run.case.plot === "maintenance starts" ? await missingCopy(run) : []),
    ...(await wrongBalances(stack.service, [customer], evidence.accounts, urls)),
    ...(await heldByToken(run)),
    ...needlessCalls(run, totals),
    ...run.holds.broken,
    ...stack.processes.flatMap((process) => process.defects()),
    ...(await ledgerViolations(stack.service)),
  ];
  return { broken, seen: summaryOf(run, totals) };
}

function summaryOf({ attempts, stack }: CaseRun, totals: Totals): string {
  const last = attempts.at(-1);
  const longestMs = Math.max(0, ...attempts.map(durationMs));
  return [
    `${last?.answer?.status ?? "no answer"} at attempt ${attempts.length}`,
    `longest ${(longestMs / 1_000).toFixed(1)} s`,
    `${totals.charged} charged`,
    ...(totals.inDoubt > 0 ? ["in doubt: reversed"] : []),
    `${stack.calls.length} provider calls`,
  ].join(", ");
}

function missingDeaths({ deaths, deathsDue, strayDeaths }: CaseRun): string[] {
  if (deaths.length === deathsDue) return strayDeaths;
  const points = deaths.map(({ point }) => `${point.step}:${point.edge}`).join(", ");
  return [...strayDeaths, `${deaths.length} of ${deathsDue} processes died at their point: ${points || "none"}`];
}

/** Whether callers got an answer, and whether it is charged, as the case expects. Redis kept its data. */
function unexpectedOutcome(run: CaseRun, { accounts }: Evidence): string[] {
  const { ends, keyed } = run.case;
  const texts = run.attempts.flatMap(({ answer }) => (answer?.status === 200 ? [answer.text] : []));
  const found = [...accounts.byRequest.values()];
  const standing = found.filter(isStanding).length;
  const reasons = found.flatMap(({ reversedFor }) => reversedFor ?? []).join();
  const isAnswered = texts.length > 0;
  const due = (isAnswered || keyed) && ends !== "in doubt" ? 1 : 0;
  const statuses = run.attempts.map(({ answer, noAnswer }) => answer?.status ?? noAnswer).join(", ");
  return [
    ...(isAnswered === (ends === "unanswered") ? [`expected to end ${ends}: ${statuses}`] : []),
    ...(standing === due ? [] : [`${standing} charges stand for ${texts.length} answers`]),
    ...(new Set(texts).size > 1 ? ["one key has two different answers"] : []),
    ...(ends === "in doubt" && reasons !== "undelivered" ? [`reversed for: ${reasons || "nothing"}`] : []),
  ];
}

/** Every API replays what was paid under the key, byte for byte. */
async function unfetchedKey({ stack, customer, attempts, key = "", keyword }: CaseRun): Promise<string[]> {
  const first = attempts.find(({ answer }) => answer?.status === 200)?.answer?.text;
  const broken = await Promise.all(
    stack.apis.map(async ({ name, url }) => {
      const repeat = () =>
        fetch(`${url ?? ""}/v1/serp/search`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${customer.token}`,
            "content-type": "application/json",
            "idempotency-key": key,
          },
          body: JSON.stringify({ keyword }),
        });
      let response = await repeat();
      await becomes(async () => response.status !== 503 || (response = await repeat()).status !== 503, refusedMsMax);
      const text = await response.text();
      const isReplayed = response.headers.get("idempotency-replayed") === "true";
      return text === first && isReplayed
        ? []
        : [`${name} answers the key with ${response.status} ${text.slice(0, 200)}`];
    }),
  );
  return broken.flat();
}

/** A new leader stores every balance in Redis. */
async function missingCopy({ stack, customer }: CaseRun): Promise<string[]> {
  const { balance } = keysOf(customer.organizationId);
  const isThere = await becomes(async () => (await stack.service.redis.exists(balance)) === 1, copyMsMax);
  return isThere ? [] : ["no worker copied the balance to Redis"];
}

/** Redis has counted the searches against the limits of their token, and no hold is left. */
async function heldByToken({ stack, customer }: CaseRun): Promise<string[]> {
  const { organizationId, tokenId } = customer;
  const { [tokenId]: spent, ...held } = await stack.service.redis.hgetall(keysOf(organizationId).tokens);
  const left = Object.entries(held).map(([field, mils]) => `${field} still holds ${mils} mils against its token`);
  return spent === undefined ? [...left, "Redis does not know what the token spent"] : left;
}

/** The provider may be called once per search, once per run that takes over, and once per failed call. */
function needlessCalls(
  { stack, deaths, twinDeaths, keyword }: CaseRun,
  { charged, refunded, reversed }: Totals,
): string[] {
  const calls = stack.calls.filter((call) => call.keyword === keyword);
  const failed = calls.filter(({ answeredAtMs }) => !Number.isFinite(answeredAtMs)).length;
  const takeOvers = twinDeaths + deaths.filter(({ kind }) => kind === "worker").length;
  const searches = charged + reversed + refunded;
  const most = searches + takeOvers + failed;
  return calls.length > most ? [`${calls.length} provider calls, at most ${most} expected`] : [];
}
