import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "vitest";
import { z } from "zod";
import { readSource } from "../harness/assertions/sources.ts";
import { type Arrival, faultSchema, startFaultyProxy } from "../harness/servers/faulty-proxy.ts";
import type { Service } from "../harness/processes/service.ts";

/** Runs the cases of `clients/conformance.json` with the driver of a client, which makes their calls and prints how they ended. */

/** One case waits for the search deadline. A shorter one would end searches of the others on a busy machine. */
export const searchDeadlineMs = 10_000;
const deadlineMsDefault = 60_000;
// A request that was sent at the deadline may arrive a little later on a busy machine.
const arrivalMsMax = 1_000;

export const cases = z
  .object({
    cases: z.array(
      z.strictObject({
        promise: z.string(),
        call: z.enum(["search", "usage", "many"]).default("search"),
        count: z.int().default(1),
        keyword: z.string().default("tea"),
        keywordCharacters: z.int().default(0),
        creditMils: z.int().default(100),
        clockJumpMs: z.int().default(0),
        options: z.object({ deadlineMs: z.int().optional(), maxRetries: z.int().optional() }).default({}),
        faults: z.array(faultSchema),
        always: z.boolean().default(false),
        expect: z.strictObject({
          requests: z.int().optional(),
          charges: z.int(),
          isReplay: z.boolean().optional(),
          error: z.string().optional(),
          mayBeCharged: z.boolean().optional(),
          fetch: z.boolean().default(false),
          pauseMsMin: z.int().default(0),
          lastPauseMsMin: z.int().default(0),
        }),
      }),
    ),
  })
  .parse(JSON.parse(readSource("clients/conformance.json"))).cases;
type Case = (typeof cases)[number];

/**
 * The cases that a client of `fetch` can keep. A runtime's `fetch` may lose an answer that comes before it has sent a whole body:
 * the client then reports a lost reply, and repeats the request.
 */
export const casesOfFetch = cases.filter(
  ({ faults }) => !faults.some((one) => one.kind === "answer" && one.early === true),
);

const outcome = z.object({
  answers: z.int(),
  isReplay: z.boolean().optional(),
  attempts: z.int().optional(),
  error: z.string().optional(),
  mayBeCharged: z.boolean().optional(),
  key: z.string().optional(),
  fetched: z.boolean().nullish(),
});

interface Ended {
  outcome: z.infer<typeof outcome>;
  arrivals: Arrival[];
  organizationId: string;
}

/** Makes the calls of all cases at once. Cases that shift the clock have a process of their own: it has one clock. */
export async function runCases(service: Service, driver: readonly string[]): Promise<ReadonlyMap<Case, Ended>> {
  const groups = Map.groupBy(cases, ({ clockJumpMs }) => clockJumpMs);
  const ended = await Promise.all([...groups].map(([jumpMs, group]) => runTogether(service, driver, jumpMs, group)));
  return new Map(ended.flat());
}

async function runTogether(service: Service, driver: readonly string[], clockJumpMs: number, group: readonly Case[]) {
  const api = service.apis[0]?.url ?? "";
  const opened = await Promise.all(
    group.map(async (one) => ({
      one,
      ...(await service.organization({ creditMils: one.creditMils })),
      proxy: await startFaultyProxy(api, one.faults, one.always),
    })),
  );
  const tasks = opened.map(
    ({ one: { call, count, keyword, keywordCharacters, options, expect: wanted }, token, proxy }) => ({
      call,
      options: { deadlineMs: deadlineMsDefault, ...options, token, baseURL: proxy.url },
      request: { keyword },
      keywordCharacters,
      requests: Array.from({ length: count }, (_, at) => ({ keyword: `${keyword} ${at}` })),
      ...(wanted.fetch && { api }),
    }),
  );
  const [program, ...args] = [...driver, JSON.stringify(tasks), String(clockJumpMs)];
  try {
    const { stdout } = await promisify(execFile)(program, args, { timeout: 2 * deadlineMsDefault });
    const outcomes = z.array(outcome).length(group.length).parse(JSON.parse(stdout));
    return opened.map(({ one, proxy: { arrivals }, organizationId }, index): [Case, Ended] => {
      return [one, { outcome: outcomes[index] ?? { answers: 0 }, arrivals, organizationId }];
    });
  } finally {
    await Promise.all(opened.map(({ proxy }) => proxy.close()));
  }
}

/**
 * Expects the calls and the error that a case names.
 * @returns the searches charged, and the requests that the runtime sent by itself, which the client does not count.
 */
export async function endOf(service: Service, one: Case, ended: Ended | undefined) {
  if (!ended) throw new Error("the case was not run");
  const { outcome: told, arrivals, organizationId } = ended;
  const { requests, error, isReplay, mayBeCharged, fetch, pauseMsMin, lastPauseMsMin } = one.expect;
  expect(told).toMatchObject({
    answers: error === undefined ? one.count : 0,
    ...(isReplay !== undefined && { isReplay }),
    ...(error !== undefined && { error, mayBeCharged }),
    ...(fetch && { fetched: true }),
  });
  expect(arrivals).toHaveLength(requests ?? arrivals.length);
  const keys = [...new Set(arrivals.map(({ key }) => key))];
  expect(keys).toHaveLength(one.call === "usage" ? 1 : one.count);
  expect(told.key ?? keys[0]).toBe(keys[0]);
  const [first = 0, second = Infinity] = arrivals.map(({ atMs }) => atMs);
  expect(second - first).toBeGreaterThanOrEqual(pauseMsMin);
  const [previous = 0, last = Infinity] = arrivals.slice(-2).map(({ atMs }) => atMs);
  expect(last - previous).toBeGreaterThanOrEqual(lastPauseMsMin);
  const { deadlineMs = deadlineMsDefault } = one.options;
  expect(arrivals.filter(({ atMs }) => atMs - first > deadlineMs + arrivalMsMax)).toEqual([]);

  const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;
  return { charges, uncounted: arrivals.length - (told.attempts ?? arrivals.length) };
}
