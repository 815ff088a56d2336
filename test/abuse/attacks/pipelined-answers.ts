import { setTimeout as sleep } from "node:timers/promises";
import { protocolTimes } from "../../../shared/protocol-times.ts";
import type { Attack } from "../attack.ts";
import { Connection } from "../callers/connection.ts";
import { getBytes, largestFile, searchBytes } from "../callers/requests.ts";
import { responsesIn } from "../callers/responses.ts";
import { judgeAnswers } from "../judges/money.ts";
import { usableCopies } from "../judges/usable-copies.ts";

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
