import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { readSource } from "../harness/assertions/sources.ts";
import { pythonPath, withoutPython } from "../harness/clients/python.ts";
import { startFaultyProxy } from "../harness/servers/faulty-proxy.ts";
import { Service } from "../harness/processes/service.ts";

/** All clients keep the promises of `clients/conformance.json`, against a real API behind a proxy that does the faults. */

const searchDeadlineMs = 1_500;
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
const cases = z
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

const python = [pythonPath, "-B", fileURLToPath(new URL("./conformance_driver.py", import.meta.url))];
const drivers = {
  TypeScript: [process.execPath, fileURLToPath(new URL("./conformance-driver.ts", import.meta.url))],
  Python: [...python, "sync"],
  asyncio: [...python, "async"],
};

const outcome = z.object({
  answers: z.int(),
  isReplay: z.boolean().optional(),
  attempts: z.int().optional(),
  error: z.string().optional(),
  mayBeCharged: z.boolean().optional(),
  key: z.string().optional(),
  fetched: z.boolean().nullish(),
});

let service: Service;
beforeAll(async () => {
  service = await Service.start({ environment: { SEARCH_DEADLINE_MS: String(searchDeadlineMs) } });
});
afterAll(() => service.stop());

async function runCase([program = "", ...args]: readonly string[], one: Case) {
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

const ready = Object.entries(drivers).map(([name, driver]) => {
  const isSkipped = name !== "TypeScript" && withoutPython !== "";
  return { name: name + (isSkipped ? withoutPython : ""), driver, isSkipped };
});

describe.each(ready)("the $name client", ({ driver, isSkipped }) => {
  test.skipIf(isSkipped).concurrent.each(cases)("$promise", async (one) => {
    const { ended, arrivals, organizationId } = await runCase(driver, one);
    const { requests, charges, error, isReplay, mayBeCharged, fetch, pauseMsMin } = one.expect;
    expect(ended).toMatchObject({
      answers: error === undefined ? one.count : 0,
      ...(isReplay !== undefined && { isReplay }),
      ...(error !== undefined && { error, mayBeCharged }),
      ...(fetch && { fetched: true }),
    });
    expect(arrivals).toHaveLength(requests ?? arrivals.length);
    expect(ended.attempts ?? arrivals.length).toBe(arrivals.length);
    const keys = [...new Set(arrivals.map(({ key }) => key))];
    expect(keys).toHaveLength(one.call === "usage" ? 1 : one.count);
    expect(ended.key ?? keys[0]).toBe(keys[0]);
    const [first = 0, second = Infinity] = arrivals.map(({ atMs }) => atMs);
    expect(second - first).toBeGreaterThanOrEqual(pauseMsMin);
    const { deadlineMs = deadlineMsDefault } = one.options;
    expect(arrivals.filter(({ atMs }) => atMs - first > deadlineMs + arrivalMsMax)).toEqual([]);

    const paid = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
    expect(paid).toHaveLength(charges);
  });
});

test("after all cases nothing is held, and the ledger agrees with itself", async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true });
});
