import { setTimeout as sleep } from "node:timers/promises";
import { countCharges } from "../../faults/audit/accounts.ts";
import { ledgerViolations } from "../../faults/audit/audit.ts";
import { keepInFlight } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization, Service } from "../../harness/processes/service.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { largestAnswer } from "../callers/answer-sizes.ts";
import { Connection } from "../callers/connection.ts";
import { searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";

const inFlightMax = 2;
// When as many answers are reset at once as the plan allows in flight, one fewer than the bound has been counted.
const freeMax = 2 * inFlightMax - 1;
// One such search makes more calls than a token may leave unpaid.
const unpaidCalls = 10;
const boundMs = 60_000;
const headEnd = "\r\n\r\n";
const brokenOff = "broken off";
const crowded = "429 concurrency";
const refused = "429 unpaid_calls";
const crowdedPauseMs = 20;
/** How much of an answer is read: nearly all, or so little that the rest does not fit into the socket buffers. */
const takenParts: Record<string, (bodyBytes: number) => number> = {
  "all but the last kilobyte": (bodyBytes) => bodyBytes - 1_000,
  "the first tenth": (bodyBytes) => bodyBytes / 10,
};
const attackers = 8;
/** As many answers of this size as an organization may leave unread. */
const heldMax = 5;
// Less than the time that a caller has to read an answer.
const heldMsMax = 2_000;
const searches: Record<Strength, number> = { quick: 10, full: 40 };

/** A caller reads nearly all of a REST answer and resets, so that its charge is reversed. */
export const lastKilobyte: Attack = {
  name: "last-kilobyte",
  tried: `answers of 2 MB, reset after all but the last kilobyte, or the first tenth, has been read, ${heldMax} at once, on a plan with ${inFlightMax} searches in flight`,
  run: async (stack, strength) => {
    stack.provider.otherwise = largestAnswer;
    const findings: Finding[] = [];
    for (const [what, partOf] of Object.entries(takenParts)) {
      const attacker = await stack.service.organization({
        terms: { concurrency: inFlightMax, windowLimit: 1_000, unpaidCalls },
      });
      const outcomes = await breakOffAll(stack, attacker, { partOf, count: searches[strength] });
      findings.push(await judge(stack, attacker, { what, outcomes }));
    }
    return findings;
  },
};

/** Stops reading answers shortly before their end, and resets several at once. @returns how each search ended. */
async function breakOffAll(
  { apiUrl: url }: AttackStack,
  { token }: Organization,
  { partOf, count }: { partOf: (bodyBytes: number) => number; count: number },
): Promise<string[]> {
  const outcomes: string[] = [];
  const held: Connection[] = [];
  let heldSinceMs = 0;
  const resetAll = () => {
    for (const connection of held.splice(0)) connection.reset();
  };
  await keepInFlight(attackers, async (attacker) => {
    if (outcomes.length >= count) return false;
    const connection = await Connection.open(url);
    connection.send(searchBytes({ url, token }, { keyword: `broken off ${attacker} ${outcomes.length}`, depth: 100 }));
    const outcome = await readMost(connection, partOf);
    if (held.length === 0) heldSinceMs = performance.now();
    if (outcome === brokenOff) held.push(connection);
    else connection.reset();
    if (outcome === crowded) await sleep(crowdedPauseMs);
    else outcomes.push(outcome);
    if (held.length >= heldMax || performance.now() - heldSinceMs > heldMsMax) resetAll();
    return true;
  });
  resetAll();
  return outcomes;
}

/** Reads part of an answer. @returns how the search ended for its caller. */
async function readMost(connection: Connection, partOf: (bodyBytes: number) => number): Promise<string> {
  await connection.readBytes(1, boundMs);
  const [response] = responsesIn(connection.received);
  if (response?.status !== 200) return response ? outcomeOf(response) : "closed";
  const headBytes = connection.received.indexOf(headEnd) + headEnd.length;
  const bodyBytes = Number(response.headers.get("content-length"));
  await connection.readBytes(headBytes + partOf(bodyBytes), boundMs);
  return brokenOff;
}

async function next(service: Service, token: string): Promise<string> {
  const { status, body } = await service.search(token, { keyword: "one more" });
  return `${status} ${body.error?.details.reason}`;
}

async function judge(
  { service }: AttackStack,
  { organizationId, token }: Organization,
  { what, outcomes }: { what: string; outcomes: readonly string[] },
): Promise<Finding> {
  await service.rest();
  const taken = outcomes.filter((outcome) => outcome === brokenOff).length;
  const free = taken - (await countCharges(service.database, organizationId));
  const violations = await ledgerViolations(service);
  // If the last searches were all reset at once, the next one is refused.
  const isRefused = free < inFlightMax || outcomes.includes(refused) || (await next(service, token)) === refused;
  return {
    promised: `${what} taken: at most ${freeMax} are free, then 429 with the reason unpaid_calls; the others are paid`,
    seen: [`${free} of ${taken} are free; ${tally(outcomes)}`, ...violations].join("; "),
    held: free <= freeMax && isRefused && violations.length === 0,
  };
}
