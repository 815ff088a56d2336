import { newId } from "../../../shared/ids.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Strength } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { largestAnswer } from "../callers/answer-sizes.ts";
import { Connection } from "../callers/connection.ts";
import { cancelBytes, toolCallBytes } from "../callers/requests.ts";
import { responsesIn } from "../callers/responses.ts";
import { judgeAnswers } from "../judges/money.ts";
import { usableCopies } from "../judges/usable-copies.ts";

const boundMs = 60_000;
const idleMs = 5_000;

/** An agent cancels a call once its answer has begun to arrive, and reads on. */
export const cancelledAnswers: Attack = {
  name: "cancelled-answers",
  tried: "MCP searches whose agent waits for the first bytes, sends notifications/cancelled, then reads the rest",
  run: async (stack, strength) => {
    const attacker = await stack.service.organization();
    stack.provider.otherwise = largestAnswer;
    const copies = new Set<string>();
    for (const progress of [false, true]) {
      for (let n = 0; n < rounds[strength]; n += 1) {
        for (const id of await cancelWhileUnread(stack, attacker, { n, progress })) copies.add(id);
      }
    }
    return [await judgeAnswers(stack, attacker, copies)];
  },
};

const rounds: Record<Strength, number> = { quick: 1, full: 5 };

/** @param call.progress whether to ask for progress notifications, which makes the answer an event stream instead of JSON. */
async function cancelWhileUnread(
  stack: AttackStack,
  { token }: Organization,
  { n, progress }: { n: number; progress: boolean },
): Promise<Set<string>> {
  const by = { url: stack.apiUrl, token };
  const call = { id: n + 1, session: newId("mcp") };
  const query = { keyword: `cancelled ${progress} ${n}`, depth: 100 };
  const [calling, cancelling] = [await Connection.open(by.url), await Connection.open(by.url)];
  calling.send(toolCallBytes(by, { ...call, query, ...(progress && { meta: { progressToken: 1 } }) }));
  // By then the delivery has begun: progress notifications are a few hundred bytes.
  await calling.readBytes(10_000, boundMs);
  cancelling.send(cancelBytes(by, call));
  await cancelling.readUntil(() => responsesIn(cancelling.received).length > 0, boundMs);
  await calling.readUntil(() => responsesIn(calling.received).some(({ isWhole }) => isWhole), idleMs);
  calling.reset();
  cancelling.reset();
  return usableCopies(calling.received);
}
