import { newToken } from "../../../api/tokens/tokens.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../callers/connection.ts";
import { responsesIn } from "../callers/responses.ts";
import { honestBeside, honestOrganizations, judgeHonest } from "../judges/honest-callers.ts";
import { inMb, redisBytes } from "../judges/memory.ts";

const atOnce = 64;
const idleMs = 60_000;
const sessionsMax = 60; // The page requests of an organization in a minute.
const attemptsOfNetworkMax = 10;
const grownBytesMax = 50 * 1_048_576;
const attempts: Record<Strength, number> = { quick: 600, full: 20_000 };

/** Sign-ins with one valid token and with guesses, from as many networks as there are attempts, and from one. */
export const crowdedSignIns: Attack = {
  name: "crowded-sign-ins",
  tried: `sign-ins with one token and with guesses, ${atOnce} at once, each from another network, and as many from one`,
  stack: { settings: { TRUSTED_PROXIES: "1" } },
  run: async (stack, strength) => {
    const { service } = stack;
    const attacker = await service.organization();
    const honest = { organizations: await honestOrganizations(stack, 4), perSecond: 5 };
    const before = await redisBytes(service.redis);
    const outcomes: Outcome[] = [];
    const answers = await honestBeside(stack, honest, async () => {
      outcomes.push(...(await signInAll(stack, attacker, attempts[strength])));
    });
    const grownBytes = (await redisBytes(service.redis)) - before;
    return [...judge(outcomes), await judgeSessions(stack, grownBytes), judgeHonest(answers)];
  },
};

interface Outcome {
  isGuess: boolean;
  isCrowd: boolean;
  status: number;
}

async function signInAll({ apiUrl }: AttackStack, { token }: Organization, count: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let sent = 0;
  const signIn = async () => {
    const number = sent++;
    const [isGuess, isCrowd] = [number % 2 === 0, number % 4 >= 2];
    const address = isCrowd ? "198.51.100.1" : `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`;
    const body = `token=${isGuess ? newToken() : token}`;
    const connection = await Connection.open(apiUrl);
    connection.send(
      `POST /billing/sign-in HTTP/1.1\r\nhost: ${new URL(apiUrl).host}\r\nsec-fetch-site: same-origin\r\nx-forwarded-for: ${address}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await connection.readUntil(() => responsesIn(connection.received).some(({ isWhole }) => isWhole), idleMs);
    connection.reset();
    outcomes.push({ isGuess, isCrowd, status: responsesIn(connection.received)[0]?.status ?? 0 });
  };
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (outcomes.length < count) await signIn();
    }),
  );
  return outcomes;
}

function judge(outcomes: readonly Outcome[]): Finding[] {
  const guessed = outcomes.filter(({ isGuess, status }) => isGuess && status === 303).length;
  const crowd = outcomes.filter(({ isCrowd }) => isCrowd);
  const looked = crowd.filter(({ status }) => status !== 429).length;
  return [
    {
      promised: "no guess signs in",
      seen: `${tally(outcomes.map(({ status }) => status))}; ${guessed} guesses let in`,
      held: guessed === 0 && outcomes.every(({ status }) => status !== 0 && status < 500),
    },
    {
      promised: `of one network, ${attemptsOfNetworkMax} attempts in a minute are looked at`,
      seen: `${looked} of ${crowd.length}`,
      // The attempts may lie in two windows.
      held: looked <= 2 * attemptsOfNetworkMax,
    },
  ];
}

async function judgeSessions({ service }: AttackStack, grownBytes: number): Promise<Finding> {
  const sessions = (await service.redis.keys("session:*")).length;
  return {
    promised: `one token opens at most ${sessionsMax} sessions in a minute, and Redis grows by at most ${inMb(grownBytesMax)} MB`,
    seen: `${sessions} sessions, ${inMb(grownBytes)} MB`,
    held: sessions <= 2 * sessionsMax && grownBytes <= grownBytesMax,
  };
}
