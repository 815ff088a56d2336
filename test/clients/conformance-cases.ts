import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "vitest";
import { z } from "zod";
import { readSource } from "../harness/assertions/sources.ts";
import { startFaultyProxy } from "../harness/servers/faulty-proxy.ts";
import type { Service } from "../harness/processes/service.ts";

/** Runs the cases of `clients/conformance.json` with the driver of a client, which makes one call and prints how it ended. */

/** One case waits for the search deadline. A shorter one would end searches of the others on a busy machine. */
export const searchDeadlineMs = 10_000;
const deadlineMsDefault = 60_000;
// A request that was sent at the deadline may arrive a little later on a busy machine.
const arrivalMsMax = 1_000;

const answer = z.strictObject({
  kind: z.literal("answer"),
  status: z.int(),
  after: z.boolean().optional(),
  text: z.string().optional(),
  code: z.string().optional(),
  reason: z.string().optional(),
  retryAfter: z.string().optional(),
  date: z.string().optional(),
});
const fault = z.union([
  z.strictObject({ kind: z.enum(["pass", "refuse", "lose", "cut", "cut-after", "hold"]) }),
  z.strictObject({ kind: z.literal("delay"), ms: z.int() }),
  answer,
]);
export const cases = z
  .object({
    cases: z.array(
      z.strictObject({
        promise: z.string(),
        call: z.enum(["search", "usage", "many"]).default("search"),
        count: z.int().default(1),
        keyword: z.string().default("tea"),
        creditMils: z.int().default(100),
        clockJumpMs: z.int().default(0),
        options: z.object({ deadlineMs: z.int().optional(), maxRetries: z.int().optional() }).default({}),
        faults: z.array(fault),
        always: z.boolean().default(false),
        expect: z.strictObject({
          requests: z.int().optional(),
          charges: z.int(),
          isReplay: z.boolean().optional(),
          error: z.string().optional(),
          mayBeCharged: z.boolean().optional(),
          fetch: z.boolean().default(false),
          pauseMsMin: z.int().default(0),
        }),
      }),
    ),
  })
  .parse(JSON.parse(readSource("clients/conformance.json"))).cases;
type Case = (typeof cases)[number];

const outcome = z.object({
  answers: z.int(),
  isReplay: z.boolean().optional(),
  attempts: z.int().optional(),
  error: z.string().optional(),
  mayBeCharged: z.boolean().optional(),
  key: z.string().optional(),
  fetched: z.boolean().nullish(),
});

async function runCase(service: Service, [program = "", ...args]: readonly string[], one: Case) {
  const { token, organizationId } = await service.organization({ creditMils: one.creditMils });
  const api = service.apis[0]?.url ?? "";
  const proxy = await startFaultyProxy(api, one.faults, one.always);
  try {
    const { call, count, keyword, clockJumpMs } = one;
    const options = { deadlineMs: deadlineMsDefault, ...one.options, token, baseURL: proxy.url };
    const task = JSON.stringify({ options, call, count, keyword, clockJumpMs });
    const command = [...args, task, ...(one.expect.fetch ? [api] : [])];
    const { stdout } = await promisify(execFile)(program, command, {
      timeout: 2 * deadlineMsDefault,
    });
    return { ended: outcome.parse(JSON.parse(stdout)), arrivals: proxy.arrivals, organizationId };
  } finally {
    await proxy.close();
  }
}

/**
 * Runs a case, and expects the calls and the error that it names.
 * @returns the searches charged, and the requests that the runtime sent by itself, which the client does not count.
 */
export async function endOf(service: Service, driver: readonly string[], one: Case) {
  const { ended, arrivals, organizationId } = await runCase(service, driver, one);
  const { requests, error, isReplay, mayBeCharged, fetch, pauseMsMin } = one.expect;
  expect(ended).toMatchObject({
    answers: error === undefined ? one.count : 0,
    ...(isReplay !== undefined && { isReplay }),
    ...(error !== undefined && { error, mayBeCharged }),
    ...(fetch && { fetched: true }),
  });
  expect(arrivals).toHaveLength(requests ?? arrivals.length);
  const keys = [...new Set(arrivals.map(({ key }) => key))];
  expect(keys).toHaveLength(one.call === "usage" ? 1 : one.count);
  expect(ended.key ?? keys[0]).toBe(keys[0]);
  const [first = 0, second = Infinity] = arrivals.map(({ atMs }) => atMs);
  expect(second - first).toBeGreaterThanOrEqual(pauseMsMin);
  const { deadlineMs = deadlineMsDefault } = one.options;
  expect(arrivals.filter(({ atMs }) => atMs - first > deadlineMs + arrivalMsMax)).toEqual([]);

  const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
  return { charges, uncounted: arrivals.length - (ended.attempts ?? arrivals.length) };
}
