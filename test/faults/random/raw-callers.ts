import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Connection } from "../../harness/clients/connection.ts";
import { cancelBytes, searchBytes, toolCallBytes } from "../../abuse/callers/requests.ts";
import { responsesIn } from "../../harness/clients/responses.ts";
import { usableAnswers } from "../../abuse/judges/usable-copies.ts";
import { newId } from "../../../shared/ids.ts";
import type { Attempt } from "../audit/evidence.ts";
import { type Cluster, type Customer, type CustomerToken, deadlineMs, priceOf } from "./cluster.ts";

const timeoutMs = deadlineMs + 6_000;
// After a cancellation the server may answer, close the connection, or do neither.
const cancelledMsMax = 2_000;

const answerHead = z.object({ requestId: z.string() });

/** A search that a caller sends, and how. */
export interface CallerRequest {
  customer: Customer;
  token: CustomerToken;
  api: 0 | 1;
  keyword: string;
  key?: string | undefined;
  /** The fields of the request besides the keyword. */
  fields: object;
}

/** Sends several searches on one connection before it reads. @returns an attempt for each. */
export async function pipeline(cluster: Cluster, requests: readonly CallerRequest[]): Promise<Attempt[]> {
  const attempts = requests.map(newAttempt);
  const [first] = requests;
  if (!first) return [];
  const connection = await open(cluster, first);
  for (const { token, api, keyword, fields } of requests)
    connection?.send(
      searchBytes({ url: cluster.addressOf(api, "/").href, token: token.token }, { keyword, ...fields }),
    );
  const answersOf = () => responsesIn(connection?.received ?? Buffer.alloc(0)).filter(({ isWhole }) => isWhole);
  // The wait for an answer starts when the previous one has been read, or with the first wait that failed.
  let turnAtMs = performance.now();
  for (const [at, attempt] of attempts.entries()) {
    attempt.sentAtMs = turnAtMs;
    await connection?.readUntil(() => answersOf().length > at, timeoutMs);
    attempt.endedAtMs = performance.now();
    const found = answersOf()[at];
    if (found) {
      const { requestId } = answerHead.parse(JSON.parse(found.body));
      attempt.answer = { status: found.status, requestId, text: found.body, replayed: false };
      turnAtMs = attempt.endedAtMs;
    } else attempt.noAnswer = !connection || connection.isClosed ? "broken" : "silent";
  }
  connection?.reset();
  return attempts;
}

/** Searches over MCP and cancels with a message, perhaps while the answer arrives. Then it reads all it can get. */
export async function cancel(cluster: Cluster, request: CallerRequest, cancelAfterMs: number): Promise<Attempt> {
  const attempt = newAttempt(request);
  const { token, api, keyword, fields } = request;
  const by = { url: cluster.addressOf(api, "/").href, token: token.token };
  const call = { id: 1, session: newId("mcp") };
  const [calling, cancelling] = [await open(cluster, request), await open(cluster, request)];
  calling?.send(toolCallBytes(by, { ...call, query: { keyword, ...fields } }));
  await sleep(cancelAfterMs);
  cancelling?.send(cancelBytes(by, call));
  const answerOf = () => [...usableAnswers(calling?.received ?? Buffer.alloc(0))].at(0);
  await calling?.readUntil(() => answerOf() !== undefined, cancelledMsMax);
  attempt.endedAtMs = performance.now();
  const answer = answerOf();
  if (answer) attempt.answer = { status: 200, requestId: answer[0], text: answer[1], replayed: false };
  else attempt.noAnswer = "disconnected";
  calling?.reset();
  cancelling?.reset();
  return attempt;
}

/** An attempt that begins now. */
export const newAttempt = ({ customer, token: { tokenId }, api, keyword, key, fields }: CallerRequest): Attempt => ({
  organizationId: customer.organizationId,
  tokenId,
  keyword,
  key,
  priceMils: priceOf(customer, fields),
  api,
  sentAtMs: performance.now(),
  endedAtMs: 0,
});

/** @returns undefined if the API accepts no connections. */
const open = (cluster: Cluster, { api }: CallerRequest): Promise<Connection | undefined> =>
  Connection.open(cluster.addressOf(api, "/").href).catch(() => undefined);
