import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../../shared/ids.ts";
import { protocolTimes } from "../../../shared/protocol-times.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { AttackStack } from "../attack-stack.ts";
import type { Attack, Strength } from "../attack.ts";
import { largestAnswer } from "../callers/answer-sizes.ts";
import { Connection } from "../callers/connection.ts";
import {
  cancelBytes,
  type Credential,
  getBytes,
  largestFile,
  searchBytes,
  toolCallBytes,
} from "../callers/requests.ts";
import { responsesIn } from "../callers/responses.ts";
import { judgeAnswers } from "../judges/money.ts";
import { usableCopies } from "../judges/usable-copies.ts";

/** Callers who try to get a usable copy of an answer whose charge is then reversed. */

// Together the maximum that a connection may pipeline.
const filesAhead = 5;
const searches = 4;
// Longer than the service waits for a caller to read an answer.
const unreadMs = protocolTimes.deliveryTimeoutMs + 2_000;
const idleMs = 20_000;

/** Answers wait behind responses that the attacker does not read, until their charges are reversed. */
export const pipelinedAnswers: Attack = {
  name: "pipelined-answers",
  tried: `${searches} searches pipelined behind ${filesAhead} × ${largestFile}, read after ${unreadMs / 1_000} s`,
  run: async (stack, strength) => {
    const attacker = await stack.service.organization();
    const by = { url: stack.apiUrl, token: attacker.token };
    const connections = strength === "full" ? 4 : 1;
    const received = await Promise.all(
      Array.from({ length: connections }, async (_, at) => {
        const connection = await Connection.open(by.url);
        for (let file = 0; file < filesAhead; file += 1) connection.send(getBytes(by.url, largestFile));
        for (let n = 0; n < searches; n += 1) connection.send(searchBytes(by, { keyword: `pipelined ${at} ${n}` }));
        await sleep(unreadMs);
        const all = () =>
          responsesIn(connection.received).filter(({ isWhole }) => isWhole).length === filesAhead + searches;
        await connection.readUntil(all, idleMs);
        connection.reset();
        return connection.received;
      }),
    );
    return [await judgeAnswers(stack, attacker, new Set(received.flatMap((bytes) => [...usableCopies(bytes)])))];
  },
};

const boundMs = 60_000;
const readOnMs = 5_000;
const cancellations: Record<Strength, number> = { quick: 1, full: 5 };

/** An agent cancels a call once its answer has begun to arrive, and reads on. */
export const cancelledAnswers: Attack = {
  name: "cancelled-answers",
  tried: "MCP searches whose agent waits for the first bytes, sends notifications/cancelled, then reads the rest",
  run: async (stack, strength) => {
    const attacker = await stack.service.organization();
    stack.provider.otherwise = largestAnswer;
    const copies = new Set<string>();
    for (const progress of [false, true]) {
      for (let n = 0; n < cancellations[strength]; n += 1) {
        for (const id of await cancelWhileUnread(stack, attacker, { n, progress })) copies.add(id);
      }
    }
    return [await judgeAnswers(stack, attacker, copies)];
  },
};

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
  await calling.readUntil(() => responsesIn(calling.received).some(({ isWhole }) => isWhole), readOnMs);
  calling.reset();
  cancelling.reset();
  return usableCopies(calling.received);
}

const resets: Record<Strength, number> = { quick: 2, full: 10 };

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
    for (let n = 0; n < resets[strength]; n += 1) {
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
