import { countCharges } from "../audit/accounts.ts";
import type { Row } from "../report.ts";
import { type Scenario, type ScenarioStack, withStack } from "./scenario-stack.ts";

/** The same search under the same Idempotency-Key, a hundred times at once. */

const providerMs = 50;
const atOnce = 100;

/** The outcome of one key. */
interface OneKeyRound {
  answered: number;
  /** Distinct bodies among the answers. */
  bodies: number;
  replayed: number;
  providerCalls: number;
  charges: number;
}

export const oneKey: Scenario = {
  name: "one-key",
  run: (servers) => withStack(servers, { apis: 2, workers: 2 }, (stack) => measureOneKey(stack, 20)),
};

export async function measureOneKey(stack: ScenarioStack, rounds: number): Promise<Row[]> {
  stack.answerAfter(providerMs);
  const organization = await stack.service.organization({ creditMils: 1_000_000, terms: {} });
  const seen: OneKeyRound[] = [];
  for (let round = 0; round < rounds; round += 1) seen.push(await searchUnderKey(stack, organization, `key-${round}`));
  stack.say(`one key: ${rounds} keys, each ${atOnce} times at once`);
  return [rowOf(seen)];
}

async function searchUnderKey(
  stack: ScenarioStack,
  { organizationId, token }: { organizationId: string; token: string },
  key: string,
): Promise<OneKeyRound> {
  const { service, callers, provider } = stack;
  const callsBefore = provider.requests.length;
  const chargesBefore = await countCharges(service.database, organizationId);
  const answers = await Promise.all(
    Array.from({ length: atOnce }, (_, n) => callers.searchUntilDecided(stack.apiUrl(n), token, "one key", key)),
  );
  await service.rest();
  const answered = answers.filter(({ status }) => status === 200);
  return {
    answered: answered.length,
    bodies: new Set(answered.map(({ text }) => text)).size,
    replayed: answered.filter(({ replayed }) => replayed).length,
    providerCalls: provider.requests.length - callsBefore,
    charges: (await countCharges(service.database, organizationId)) - chargesBefore,
  };
}

/** Whether the key was charged once and searched once, and every caller got the same bytes. */
const isOneAnswer = (round: OneKeyRound) =>
  round.answered === atOnce &&
  round.bodies === 1 &&
  round.replayed === atOnce - 1 &&
  round.providerCalls === 1 &&
  round.charges === 1;

function rowOf(seen: readonly OneKeyRound[]): Row {
  const range = (of: (round: OneKeyRound) => number) => {
    const [least, most] = [Math.min(...seen.map(of)), Math.max(...seen.map(of))];
    return least === most ? String(least) : `${least} to ${most}`;
  };
  return {
    what: `one Idempotency-Key ${atOnce} times at once over 2 APIs, ${seen.length} keys`,
    promised: `each: 1 charge, 1 provider call, ${atOnce} equal answers`,
    seen: `each: ${range((r) => r.charges)} charge, ${range((r) => r.providerCalls)} provider call, ${range((r) => r.answered)} answers, ${range((r) => r.bodies)} body`,
    held: seen.every(isOneAnswer),
  };
}
