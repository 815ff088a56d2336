import { countCharges } from "../../faults/audit/accounts.ts";
import { ledgerViolations } from "../../faults/audit/audit.ts";
import { callEach } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { unpaidCalls } from "../../harness/assertions/metrics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { delayed } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../callers/connection.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";
import { getAt, openDoors, patienceMs } from "../open-doors.ts";

const searchMs = 3 * patienceMs;
const inFlight = 10;
const idleMs = 60_000;
const rounds: Record<Strength, number> = { quick: 40, full: 2_000 };

/** When the client hangs up. */
const leavings = ["at once", "once it runs", "at the end of its patience", "never"] as const;
type Leaving = (typeof leavings)[number];

/** One query, spelled in several ways. */
const spellings = (q: string) => [
  `q=${q}&format=json`,
  `q=${q.replaceAll("+", "%20")}&format=json`,
  `format=json&q=${q}`,
  `q=+${q}+&format=json`,
  `q=${q.toUpperCase()}&format=json`,
  `q=${q}&format=json&language=all`,
  `q=${q}&format=json&language=EN`,
  `q=${q}&format=json&pageno=1&engines=google`,
];

/** Clients use the patience of a door to leave provider calls that they do not pay for. */
export const impatientClients: Attack = {
  name: "impatient-clients",
  tried: `searches of ${searchMs} ms at a door that answers after ${patienceMs} ms, each repeated in ${spellings("").length} spellings by clients that hang up ${leavings.join(", ")}`,
  stack: { settings: openDoors },
  run: async (stack, strength) => {
    const { service, provider } = stack;
    provider.otherwise = (request, response) =>
      delayed(isAttackers(request.body["q"]) ? searchMs : 0)(request, response);
    const attacker = await service.organization({ creditMils: 1_000_000, terms: { windowLimit: 1_000_000 } });
    const unpaidBefore = await unpaidCalls(service);
    const outcomes: string[] = [];
    const honest = await judgeHonestBeside(stack, () =>
      callEach(rounds[strength], inFlight, async (n) => {
        const leaving = leavings[n % leavings.length] ?? "never";
        for (const query of spellings(`impatient+client+${n}`))
          outcomes.push(await ask(stack, attacker, query, leaving));
      }),
    );
    const unpaid = (await unpaidAtRest(stack)) - unpaidBefore;
    return [await judgeCalls(stack, attacker, unpaid), judgeOutcomes(outcomes), honest];
  },
};

const isAttackers = (keyword: unknown) => /^ ?impatient client/i.test(String(keyword));

/** @returns how the request ended: by the client's leaving, or with this answer. */
async function ask(
  { apiUrl, service }: AttackStack,
  { token, organizationId }: Organization,
  query: string,
  leaving: Leaving,
): Promise<string> {
  const connection = await Connection.open(apiUrl);
  connection.send(getAt("serp.example", `/searxng/search?${query}`, [`x-api-key: ${token}`]));
  if (leaving === "once it runs") await service.until(async () => (await service.holdsOf(organizationId)).open > 0);
  const answers = () => responsesIn(connection.received).filter(({ isWhole }) => isWhole);
  if (leaving === "never" || leaving === "at the end of its patience")
    await connection.readUntil(() => answers().length > 0, idleMs);
  connection.reset();
  const [answer] = answers();
  return answer ? outcomeOf(answer) : "left";
}

async function unpaidAtRest({ service }: AttackStack): Promise<number> {
  await service.rest();
  return unpaidCalls(service);
}

async function judgeCalls(
  { service, provider }: AttackStack,
  attacker: Organization,
  unpaid: number,
): Promise<Finding> {
  const keywords = provider.requests.map(({ body }) => body["q"]).filter(isAttackers);
  const charges = await countCharges(service.database, attacker.organizationId);
  const violations = await ledgerViolations(service);
  return {
    promised: "every provider call is paid for, and each search is called and paid for once in all its repeats",
    seen: [
      `${keywords.length} calls for ${new Set(keywords).size} keywords, ${charges} charges, ${unpaid} calls counted as unpaid`,
      ...violations,
    ].join("; "),
    held:
      keywords.length === new Set(keywords).size &&
      keywords.length === charges &&
      charges > 0 &&
      unpaid === 0 &&
      violations.length === 0,
  };
}

const judgeOutcomes = (outcomes: readonly string[]): Finding => ({
  promised: "a client that waits gets an answer, or the error that the search still runs",
  seen: tally(outcomes),
  held: outcomes.every((outcome) => ["left", "200", "504 still_running"].includes(outcome)),
});
