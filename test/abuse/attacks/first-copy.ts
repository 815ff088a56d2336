import type { Attack, Strength } from "../attack.ts";
import { largestAnswer } from "../callers/answer-sizes.ts";
import { Connection } from "../callers/connection.ts";
import { type Credential, toolCallBytes } from "../callers/requests.ts";
import { responsesIn } from "../callers/responses.ts";
import { judgeAnswers } from "../judges/money.ts";
import { usableCopies } from "../judges/usable-copies.ts";

const boundMs = 60_000;
const rounds: Record<Strength, number> = { quick: 2, full: 10 };

/** An MCP answer contains its results twice. An agent reads the first copy and resets before the second has been sent. */
export const firstCopy: Attack = {
  name: "first-copy",
  tried: "MCP searches of which the agent reads the first of the two copies of the answer, then resets",
  run: async (stack, strength) => {
    const { token, ...organization } = await stack.service.organization();
    const by = { url: stack.apiUrl, token };
    stack.provider.otherwise = largestAnswer;
    const bytes = await bytesOfOneCopy(by);
    const copies = new Set<string>();
    for (let n = 0; n < rounds[strength]; n += 1) {
      const connection = await Connection.open(by.url);
      connection.send(callBytes(by, n));
      await connection.readBytes(bytes, boundMs);
      connection.reset();
      for (const id of usableCopies(connection.received)) copies.add(id);
    }
    return [await judgeAnswers(stack, { token, ...organization }, copies)];
  },
};

const callBytes = (by: Credential, n: number) =>
  toolCallBytes(by, { id: 1, session: "none", query: { keyword: `first copy ${n}`, depth: 100 } });

/** How many bytes of a response contain one whole copy, measured on an answer that is paid for. */
async function bytesOfOneCopy(by: Credential): Promise<number> {
  const connection = await Connection.open(by.url);
  connection.send(callBytes(by, -1));
  await connection.readUntil(() => responsesIn(connection.received).some(({ isWhole }) => isWhole), boundMs);
  connection.reset();
  const { received } = connection;
  let [enough, tooFew] = [received.length, 0];
  while (enough - tooFew > 1_000) {
    const middle = Math.floor((enough + tooFew) / 2);
    if (usableCopies(received.subarray(0, middle)).size > 0) enough = middle;
    else tooFew = middle;
  }
  return enough;
}
