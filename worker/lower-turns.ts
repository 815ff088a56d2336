import type { Redis } from "ioredis";
import { queueKeys, scorePerTurn } from "../shared/queue/search-queue.ts";
import { withinShareMax } from "../shared/queue/turns.ts";
import { Script } from "../shared/redis/script.ts";

const beyondShareFrom = withinShareMax + 1;
/** Half of the turns that BullMQ takes beyond shares. */
const halfOfTurns = withinShareMax / 2;
const highFrom = beyondShareFrom + halfOfTurns;
/** No organization has so many searches open that one comes next below this while another one of it has a high turn. */
const loweredBelow = beyondShareFrom + halfOfTurns / 2;

const lowerTurnsScript = new Script("lowerTurns", new URL("lower-turns.lua", import.meta.url));

/**
 * Lowers the turns of the searches that wait beyond shares once the next one has half of the turns behind it, so that rounds never
 * reach the last turn however long searches wait without a break. BullMQ orders waiting searches by their score alone, and all
 * scores are lowered by the same. An API that has read the coming turn just before enqueues behind all others. The next run
 * lowers the turns of those searches as well.
 * @returns how many were lowered. @throws if Redis does not answer.
 */
export async function lowerTurns(redis: Redis): Promise<number> {
  const scores = [beyondShareFrom, highFrom, loweredBelow, halfOfTurns].map((turns) => turns * scorePerTurn);
  return Number(await lowerTurnsScript.run(redis, [queueKeys.waitingByTurn], scores));
}
