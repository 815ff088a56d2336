import { afterAll, beforeAll, expect, test } from "vitest";
import { readBacklog } from "../harness/assertions/backlog.ts";
import { Service } from "../harness/processes/service.ts";
import { type SerperStub, startSerperStub } from "../harness/stubs/serper-stub.ts";

/** Redis reaches its memory limit, and evicts nothing, while searches run. */

const price = 5;
const searchesEach = 8;

let service: Service;
let stub: SerperStub;
beforeAll(async () => {
  stub = await startSerperStub();
  service = await Service.start({ environment: { ...stub.settings, SEARCH_DEADLINE_MS: "8000" } });
});
afterAll(() => Promise.all([service.stop(), stub.close()]));

const limitMemory = (bytes: number) => service.redis.config("SET", "maxmemory", bytes);

test("when Redis is full, what was admitted is answered and its holds end, new searches get 503, and later all is well", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 1_000 });
  const release = stub.hold();
  const keyed = Array.from({ length: searchesEach }, (_, n) =>
    service.search(token, { keyword: `keyed ${n}` }, { key: `k${n}` }),
  );
  const unkeyed = Array.from({ length: searchesEach }, (_, n) => service.search(token, { keyword: `unkeyed ${n}` }));
  await service.until(async () => stub.requests.length === 2 * searchesEach);
  await limitMemory(1);
  release();

  const answers = await Promise.all([...keyed, ...unkeyed]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  await service.rest();
  expect(await service.holdsOf(organizationId)).toEqual({ open: 0, heldMils: 0 });
  expect((await service.search(token, { keyword: "new" })).status).toBe(503);
  expect((await service.search(token, { keyword: "new" }, { key: "new" })).status).toBe(503);
  const replay = await service.search(token, { keyword: "keyed 0" }, { key: "k0" });
  expect({ status: replay.status, text: replay.text }).toEqual({ status: 200, text: answers[0]?.text });

  await limitMemory(0);
  await service.until(async () => (await service.search(token, { keyword: "after" })).status === 200);
  // BullMQ could not finish the jobs: they stall, run once more, and change nothing.
  await service.until(async () => {
    const { waiting, running } = await readBacklog(service.redis);
    return waiting + running === 0;
  });
  await service.rest();
  const entries = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind !== "grant");
  expect(new Set(entries.map(({ kind }) => kind))).toEqual(new Set(["charge"]));
  expect(entries).toHaveLength(2 * searchesEach + 1);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(1_000 - price * entries.length);
  expect(await service.verify()).toMatchObject({ ok: true });
});
