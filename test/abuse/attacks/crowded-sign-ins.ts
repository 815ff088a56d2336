import { newToken } from "../../../api/tokens/tokens.ts";
import { callEach } from "../../faults/scenarios/callers.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Finding, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { exchange } from "../callers/connection.ts";
import { judgeHonestBeside } from "../judges/honest-callers.ts";
import { inMb, redisBytes } from "../judges/memory.ts";

const atOnce = 64;
const sessionsMax = 60; // The page requests of an organization in a minute.
const attemptsOfNetworkMax = 10;
const grownBytesMax = 50 * 1_048_576;
const attempts: Record<Strength, number> = { quick: 600, full: 20_000 };

/** Sign-ins with one valid token and with guesses, half of them from distinct networks and half from a single one. */
export const crowdedSignIns: Attack = {
  name: "crowded-sign-ins",
  tried: `sign-ins with one token and with guesses, ${atOnce} at once, each from another network, and as many from a single one`,
  stack: { settings: { TRUSTED_PROXIES: "1" } },
  run: async (stack, strength) => {
    const { service } = stack;
    const attacker = await service.organization();
    const sessions = async () => (await service.redis.keys("session:*")).length;
    const [before, sessionsBefore] = [await redisBytes(service.redis), await sessions()];
    let outcomes: Outcome[] = [];
    const honest = await judgeHonestBeside(stack, async () => {
      outcomes = await callEach(attempts[strength], atOnce, (n) => signIn(stack, attacker, n));
    });
    const grownBytes = (await redisBytes(service.redis)) - before;
    return [...judge(outcomes), judgeSessions((await sessions()) - sessionsBefore, grownBytes), honest];
  },
};

interface Outcome {
  isGuess: boolean;
  isCrowd: boolean;
  status: number;
}

async function signIn({ apiUrl }: AttackStack, { token }: Organization, n: number): Promise<Outcome> {
  const [isGuess, isCrowd] = [n % 2 === 0, n % 4 >= 2];
  const address = isCrowd ? "198.51.100.1" : `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
  const body = `token=${isGuess ? newToken() : token}`;
  const [response] = await exchange(apiUrl, [
    `POST /billing/sign-in HTTP/1.1\r\nhost: ${new URL(apiUrl).host}\r\nsec-fetch-site: same-origin\r\nx-forwarded-for: ${address}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  ]);
  return { isGuess, isCrowd, status: response?.status ?? 0 };
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
      promised: `${attemptsOfNetworkMax} attempts of one network are checked in a minute`,
      seen: `${looked} of ${crowd.length}`,
      // The attempts may span two windows.
      held: looked <= 2 * attemptsOfNetworkMax,
    },
  ];
}

const judgeSessions = (sessions: number, grownBytes: number): Finding => ({
  promised: `one token opens at most ${sessionsMax} sessions in a minute, and Redis grows by at most ${inMb(grownBytesMax)} MB`,
  seen: `${sessions} sessions, ${inMb(grownBytes)} MB`,
  held: sessions <= 2 * sessionsMax && grownBytes <= grownBytesMax,
});
