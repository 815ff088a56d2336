import type { Row } from "../report.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";

/** The same search under the same Idempotency-Key, a hundred times at once. */

const providerMs = 50;
const rounds = 20;
const atOnce = 100;

/** The outcome of one key. */
interface Round {
  answered: number;
  /** Different bodies among the answers. */
  bodies: number;
  replayed: number;
  providerCalls: number;
  charges: number;
}

export const oneKey: Scenario = {
  name: "one-key",
  run: (servers) => withStack(servers, { apis: 2, workers: 2 }, async (stack) => [rowOf(await measure(stack))]),
};

async function measure(stack: ScenarioStack): Promise<Round[]> {
  stack.answerAfter(providerMs);
  const organization = await stack.service.organization({ creditMils: 1_000_000, terms: {} });
  const seen: Round[] = [];
  for (let round = 0; round < rounds; round += 1) seen.push(await searchUnderKey(stack, organization, `key-${round}`));
  stack.say(`one key: ${rounds} keys, each ${atOnce} times at once`);
  return seen;
}

async function searchUnderKey(
  stack: ScenarioStack,
  { organizationId, token }: { organizationId: string; token: string },
  key: string,
): Promise<Round> {
  const { service, callers, provider } = stack;
  const callsBefore = provider.requests.length;
  const chargesBefore = await countCharges(stack, organizationId);
  const answers = await Promise.all(
    Array.from({ length: atOnce }, (_, n) => callers.search(stack.apiUrl(n), token, "one key", key)),
  );
  await service.rest();
  const answered = answers.filter(({ status }) => status === 200);
  return {
    answered: answered.length,
    bodies: new Set(answered.map(({ text }) => text)).size,
    replayed: answered.filter(({ replayed }) => replayed).length,
    providerCalls: provider.requests.length - callsBefore,
    charges: (await countCharges(stack, organizationId)) - chargesBefore,
  };
}

async function countCharges({ service }: ScenarioStack, organizationId: string): Promise<number> {
  return (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
}

/** Whether one key was paid once, searched once, and every caller got the same bytes. */
const isOneAnswer = (round: Round) =>
  round.answered === atOnce &&
  round.bodies === 1 &&
  round.replayed === atOnce - 1 &&
  round.providerCalls === 1 &&
  round.charges === 1;

function rowOf(seen: readonly Round[]): Row {
  const range = (of: (round: Round) => number) => {
    const [least, most] = [Math.min(...seen.map(of)), Math.max(...seen.map(of))];
    return least === most ? String(least) : `${least} to ${most}`;
  };
  return {
    what: `one Idempotency-Key ${atOnce} times at once over 2 APIs, ${rounds} keys`,
    promised: `each: 1 charge, 1 provider call, ${atOnce} equal answers`,
    seen: `each: ${range((r) => r.charges)} charge, ${range((r) => r.providerCalls)} provider call, ${range((r) => r.answered)} answers, ${range((r) => r.bodies)} body`,
    held: seen.every(isOneAnswer),
  };
}
