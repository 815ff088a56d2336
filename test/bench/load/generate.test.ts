import type { RequestListener } from "node:http";
import { expect, test } from "vitest";
import { serve } from "../../harness/stubs/serve.ts";
import { generate } from "./generate.ts";
import type { Load } from "./load.ts";

const charged = JSON.stringify({ creditsCharged: 5 });

/** Starts a server that answers like this. @returns a load for it. */
async function loadOn(answer: RequestListener, load: Partial<Load> = {}): Promise<Load> {
  const url = await serve(answer);
  return { urls: [url], tokens: ["a", "b"], request: "search", status: 200, connections: 1, seconds: 1, ...load };
}

test("keywords and keys are distinct, and tokens take turns", async () => {
  const seen: { keyword: string; key: unknown; token: unknown }[] = [];
  const load = await loadOn(
    (request, response) => {
      request.setEncoding("utf8").on("data", (body: string) => {
        const { "idempotency-key": key, authorization: token } = request.headers;
        seen.push({ keyword: JSON.parse(body).keyword, key, token });
        response.end(charged);
      });
    },
    { request: "keyed", ratePerSecond: 40, connections: 4 },
  );
  expect(await generate(load)).toMatchObject({ answered: 40, failed: 0 });
  for (const field of ["keyword", "key"] as const) expect(new Set(seen.map((one) => one[field])).size).toBe(40);
  expect(seen.filter(({ token }) => token === "Bearer a").length).toBe(20);
});

test("at a fixed rate the latency of a request counts from when it was due, not from when a connection was free", async () => {
  let answers = 0;
  const load = await loadOn(
    (_, response) => {
      answers += 1;
      setTimeout(() => response.end(charged), answers === 1 ? 600 : 0);
    },
    { ratePerSecond: 50 },
  );
  const { answered, p50Ms } = await generate(load);
  // Six in ten are due while the first waits. Counted from sending, half of all would take almost no time.
  expect(answered).toBe(50);
  expect(p50Ms).toBeGreaterThan(50);
});

test.each([
  ["another status", 503, charged],
  ["an answer that was not charged", 200, "{}"],
])("a load ends at %s, and quotes it", async (_, status, body) => {
  const load = await loadOn((_request, response) => response.writeHead(status).end(body), { seconds: 60 });
  expect(await generate(load)).toMatchObject({ answered: 0, failed: 1, firstFailure: `${status} ${body}` });
});

test("an allowed refusal is counted and timed, and its caller waits for Retry-After", async () => {
  let requests = 0;
  const load = await loadOn(
    (_, response) => {
      requests += 1;
      response.writeHead(503, { "retry-after": "1" }).end();
    },
    { mayRefuse: true },
  );
  const { answered, failed, refusedPerSecond, refusedP99Ms } = await generate(load);
  expect({ answered, failed, requests }).toEqual({ answered: 0, failed: 0, requests: 1 });
  expect([refusedPerSecond, refusedP99Ms].every((figure) => figure !== undefined && figure > 0)).toBe(true);
});
