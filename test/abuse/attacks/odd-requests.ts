import { gzipSync } from "node:zlib";
import { tally } from "../../faults/scenarios/statistics.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { Connection } from "../callers/connection.ts";
import { type Credential, searchBytes } from "../callers/requests.ts";
import { outcomeOf, responsesIn } from "../callers/responses.ts";
import { judgeAnswers } from "../judges/money.ts";
import { usableCopies } from "../judges/usable-copies.ts";

const idleMs = 30_000;
const secondMs = 300;
const body = '{"keyword":"odd"}';
const bomb = gzipSync(Buffer.alloc(1_000_000, " ")).toString("latin1");

/** Requests that parsers of HTTP or JSON may interpret differently, by what makes them odd. None may be answered twice. */
function requestsOf({ url, token }: Credential): Record<string, string> {
  const host = new URL(url).host;
  const head = (lines: string, method = "POST", path = "/v1/serp/search") =>
    `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n${lines}\r\n\r\n`;
  const json = (text: string, more = "") =>
    head(`content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}${more}`) + text;
  return {
    "two lengths": head("content-type: application/json\r\ncontent-length: 17\r\ncontent-length: 5") + body,
    "a length and chunks":
      head("content-type: application/json\r\ncontent-length: 17\r\ntransfer-encoding: chunked") + body,
    "a smuggled second request": json(body, "\r\ntransfer-encoding : chunked"),
    "a compressed bomb":
      head(`content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}`) + bomb,
    "two keys": json(body, "\r\nidempotency-key: one\r\nidempotency-key: two"),
    "two tokens": json(body, "\r\nauthorization: Bearer smk_other"),
    "deep nesting": json(`{"keyword":${"[".repeat(8_000)}${"]".repeat(8_000)}}`),
    __proto__: json('{"keyword":"odd","__proto__":{"depth":100}}'),
    "a constructor": json('{"keyword":"odd","constructor":{"prototype":{"depth":100}}}'),
    "a huge number": json('{"keyword":"odd","depth":1e400}'),
    "combining characters": json(JSON.stringify({ keyword: `a${"\u0301".repeat(5_000)}` })),
    "direction marks": json(JSON.stringify({ keyword: "\u202Eodd" })),
    HEAD: head("content-length: 0", "HEAD"),
    OPTIONS: head("content-length: 0", "OPTIONS"),
    TRACE: head("content-length: 0", "TRACE"),
    CONNECT: head("content-length: 0", "CONNECT"),
    "a token in the query": `GET /v1/usage?token=${token}&access_token=${token} HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
    "an unknown expectation": json(body, "\r\nexpect: 200-ok"),
    "one-byte chunks without an end":
      head("content-type: application/json\r\ntransfer-encoding: chunked") +
      body
        .split("")
        .map((c) => `1\r\n${c}\r\n`)
        .join("")
        .slice(0, -3),
  };
}

export const oddRequests: Attack = {
  name: "odd-requests",
  tried: "malformed, ambiguous, nested, compressed and oversized requests on all paths",
  run: async (stack) => {
    const attacker = await stack.service.organization();
    const by = { url: stack.apiUrl, token: attacker.token };
    const [calls, errors] = [stack.provider.requests.length, stack.api.errors.length];
    // Each on a connection of its own, at once: some wait until the service gives up on them.
    const asking = Object.entries(requestsOf(by)).map(
      async ([what, bytes]) => [what, await outcomesOf(by.url, bytes)] as const,
    );
    const outcomes = Object.fromEntries(await Promise.all(asking));
    const refusals = judgeRefusals(outcomes, stack.provider.requests.length - calls);
    return [refusals, ...(await judgeHalfClosed(stack, attacker, errors))];
  },
};

async function outcomesOf(url: string, bytes: string): Promise<string[]> {
  const connection = await Connection.open(url);
  connection.send(Buffer.from(bytes, "utf8"));
  await connection.readUntil(() => responsesIn(connection.received).length > 0, idleMs);
  await connection.readUntil(() => false, secondMs); // Waits for a second answer, which must not come.
  connection.reset();
  const outcomes = responsesIn(connection.received).map(outcomeOf);
  return outcomes.length > 0 ? outcomes : [connection.isClosed ? "closed" : "left open"];
}

function judgeRefusals(outcomes: Readonly<Record<string, readonly string[]>>, calls: number): Finding {
  const wrong = Object.entries(outcomes).filter(
    ([, seen]) => seen.length > 1 || /^(200|5\d\d|left open)/.test(seen[0] ?? ""),
  );
  return {
    promised: "each is refused once, without a search and without a 5xx",
    seen: [
      tally(Object.values(outcomes).flat()),
      `${calls} provider calls`,
      ...wrong.map(([what, seen]) => `${what}: ${seen.join(", ")}`),
    ].join("; "),
    held: wrong.length === 0 && calls === 0,
  };
}

/** A caller closes its sending direction after the request. It pays for the answers that it gets, and for nothing else. */
async function judgeHalfClosed(stack: AttackStack, attacker: Organization, errorsBefore: number): Promise<Finding[]> {
  const by = { url: stack.apiUrl, token: attacker.token };
  const connection = await Connection.open(by.url);
  connection.send(searchBytes(by, { keyword: "half-closed" }));
  connection.finish();
  await connection.readUntil(() => responsesIn(connection.received).some(({ isWhole }) => isWhole), idleMs);
  connection.reset();
  const copies = usableCopies(connection.received);
  const answers = await judgeAnswers(stack, attacker, copies);
  await stack.service.rest();
  const entries = await stack.service.ledgerOf(attacker.organizationId);
  const countOf = (wanted: string) => entries.filter(({ kind }) => kind === wanted).length;
  // If the charge came before the end of the connection, it is reversed.
  const charges = countOf("charge") - countOf("reversal");
  const errors = stack.api.errors.length - errorsBefore;
  return [
    answers,
    {
      promised: "a caller that closes its sending direction pays for what it gets, and no process logged an error",
      seen: `${copies.size} answers, ${charges} charges, ${errors} errors`,
      held: charges <= copies.size && errors === 0,
    },
  ];
}
