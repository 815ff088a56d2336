/**
 * An attacker in its own process. It does everything that the attacks do, at once and without a pause, until SIGTERM. Then it
 * prints how its requests ended. Its argument is an {@link AttackerOrder} as JSON.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { newToken } from "../../../api/tokens/tokens.ts";
import { Connection, exchange } from "../../harness/clients/connection.ts";
import { cancelBytes, getBytes, largestFile, post, searchBytes, toolCallBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../../harness/clients/responses.ts";

export interface AttackerOrder {
  url: string;
  /** The token of an organization with some credit, and of one without. */
  rich: string;
  poor: string;
}

const idleMs = 5_000;
const unreadMs = 300;
const pipelined = 8;
/** How many requests of each kind run at once. */
const atOnce = 4;

const order: AttackerOrder = JSON.parse(process.argv[2] ?? "");
const rich = { url: order.url, token: order.rich };
const poor = { url: order.url, token: order.poor };
const replayed = { keyword: "replayed by the attacker", depth: 100 };
const mcp = { accept: "application/json, text/event-stream" };
const outcomes = new Map<string, number>();
let count = 0;

const kinds: (() => Promise<void>)[] = [
  () => ask(searchBytes(poor, { keyword: 1 }), pipelined),
  () => ask(searchBytes(poor, { keyword: `poor ${count}` }), pipelined),
  () => ask(searchBytes(poor, { keyword: `poor ${count}` }, { "idempotency-key": `poor-${count}` }), pipelined),
  () => ask(searchBytes({ ...rich, token: newToken() }, { keyword: "guess" }), 1),
  () => ask(post(poor, "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" }, mcp), pipelined),
  () =>
    ask(post(rich, "/stripe/webhook", { type: "checkout.session.completed" }, { "stripe-signature": "t=1,v1=0" }), 8),
  () => ask(post(rich, "/billing/sign-in", {}, { "sec-fetch-site": "same-origin" }), pipelined),
  () => ask(getBytes(order.url, "/openapi.json"), pipelined),
  () => leaveUnread(searchBytes(rich, replayed, { "idempotency-key": "replayed" })),
  () => leaveUnread(getBytes(order.url, largestFile)),
  () => leaveUnread("GET /v1/usage HTTP/1.1\r\n"),
  () => disconnect(searchBytes(rich, { keyword: `disconnected ${count}`, depth: 100 })),
  () =>
    disconnect(toolCallBytes(rich, { id: 1, session: "s", query: { keyword: `disconnected ${count}`, depth: 100 } })),
  () => cancel(),
];

/** Pipelines a request several times, and reads the answers. */
async function ask(request: string, times: number): Promise<void> {
  for (const response of await exchange(order.url, Array<string>(times).fill(request), idleMs))
    note(outcomeOf(response));
}

async function leaveUnread(request: string): Promise<void> {
  const connection = await Connection.open(order.url);
  connection.send(request.repeat(pipelined));
  await sleep(unreadMs);
  connection.reset();
  note("left unread");
}

/** Disconnects after 90 ms, when the provider has been asked. */
async function disconnect(request: string): Promise<void> {
  const connection = await Connection.open(order.url);
  connection.send(request);
  await connection.readBytes(1, 90);
  connection.reset();
  const [response] = responsesIn(connection.received);
  note(response ? outcomeOf(response) : "disconnected");
}

async function cancel(): Promise<void> {
  const call = { id: 1, session: `s${count}` };
  const [calling, cancelling] = [await Connection.open(order.url), await Connection.open(order.url)];
  calling.send(toolCallBytes(rich, { ...call, query: { keyword: `cancelled ${count}`, depth: 100 } }));
  await calling.readBytes(1, 90);
  cancelling.send(cancelBytes(rich, call));
  await cancelling.readBytes(1, idleMs);
  calling.reset();
  cancelling.reset();
  note("cancelled");
}

const note = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);

process.once("SIGTERM", () => {
  process.stdout.write(`${JSON.stringify(Object.fromEntries(outcomes))}\n`, () => process.exit());
});
const attacking = kinds.flatMap((kind) =>
  Array.from({ length: atOnce }, async () => {
    for (;;) {
      count += 1;
      // The service may refuse an attacker's connections.
      await kind().catch(() => note("no connection"));
    }
  }),
);
await Promise.all(attacking);
