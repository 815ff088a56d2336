import type { Row } from "../report.ts";
import { withStack, type Scenario, type ScenarioStack, type ScenarioServers } from "./scenario.ts";

/** The same search under the same Idempotency-Key, a hundred times at once. */

const providerMs = 50;

export interface OneKeySize {
  rounds: number;
  atOnce: number;
}

/** What one key led to. */
export interface OneKeyRound {
  answered: number;
  /** Different bodies among the answers. */
  bodies: number;
  replayed: number;
  providerCalls: number;
  charges: number;
}

export const oneKey: Scenario = {
  name: "one-key",
  run: async (surroundings) => {
    const size = { rounds: 20, atOnce: 100 };
    return [rowOf(size, await measureOneKey(surroundings, size))];
  },
};

export async function measureOneKey(surroundings: ScenarioServers, size: OneKeySize): Promise<OneKeyRound[]> {
  return withStack(surroundings, { apis: 2, workers: 2, providerMs }, async (scene) => {
    const organization = await scene.service.organization({ creditMils: 1_000_000, terms: {} });
    const rounds: OneKeyRound[] = [];
    for (let round = 0; round < size.rounds; round += 1) {
      rounds.push(await play(scene, organization, `key-${round}`, size.atOnce));
    }
    scene.say(`one key: ${size.rounds} keys, each ${size.atOnce} times at once`);
    return rounds;
  });
}

async function play(
  { service, callers, provider }: ScenarioStack,
  { organizationId, token }: { organizationId: string; token: string },
  key: string,
  atOnce: number,
): Promise<OneKeyRound> {
  const callsBefore = provider.requests.length;
  const chargesBefore = await chargesOf(service, organizationId);
  const answers = await Promise.all(
    Array.from({ length: atOnce }, (_, n) => callers.search(service.apis[n % 2]?.url ?? "", token, "one key", key)),
  );
  await service.rest();
  const answered = answers.filter(({ status }) => status === 200);
  return {
    answered: answered.length,
    bodies: new Set(answered.map(({ text }) => text)).size,
    replayed: answered.filter(({ replayed }) => replayed).length,
    providerCalls: provider.requests.length - callsBefore,
    charges: (await chargesOf(service, organizationId)) - chargesBefore,
  };
}

async function chargesOf(service: ScenarioStack["service"], organizationId: string): Promise<number> {
  return (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
}

/** Whether one key was paid for once, asked for once, and gave everybody the same bytes. */
export const isOneAnswer = (round: OneKeyRound, atOnce: number) =>
  round.answered === atOnce &&
  round.bodies === 1 &&
  round.replayed === atOnce - 1 &&
  round.providerCalls === 1 &&
  round.charges === 1;

function rowOf({ rounds, atOnce }: OneKeySize, seen: readonly OneKeyRound[]): Row {
  const range = (of: (round: OneKeyRound) => number) => {
    const [least, most] = [Math.min(...seen.map(of)), Math.max(...seen.map(of))];
    return least === most ? String(least) : `${least} to ${most}`;
  };
  return {
    what: `one Idempotency-Key ${atOnce} times at once over 2 APIs, ${rounds} keys`,
    promised: `each: 1 charge, 1 provider call, ${atOnce} equal answers`,
    seen: `each: ${range((r) => r.charges)} charge, ${range((r) => r.providerCalls)} provider call, ${range((r) => r.answered)} answers, ${range((r) => r.bodies)} body`,
    held: seen.length === rounds && seen.every((round) => isOneAnswer(round, atOnce)),
  };
}
