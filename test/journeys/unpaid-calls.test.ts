import { afterEach, beforeEach, expect, test } from "vitest";
import { Connection } from "../abuse/callers/connection.ts";
import { searchBytes } from "../abuse/callers/requests.ts";
import { unpaidCalls } from "../harness/assertions/metrics.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { hang, type SerperStub, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

/** Provider calls that callers leave unpaid, and those that are not the callers' fault. */

let service: Service;
let stub: SerperStub;
beforeEach(async () => {
  stub = await startSerperStub();
  const environment = { ...stub.settings, SEARCH_DEADLINE_MS: "4000", WORKER_CONCURRENCY: "100" };
  service = await Service.start({ environment });
});
afterEach(async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await Promise.all([service.stop(), stub.close()]);
});

/** Sends equal searches at once, and resets their connections when all of them are charged and no answer has been taken. */
async function takeNone({ organizationId, token }: Organization, count: number): Promise<void> {
  const [api] = service.apis;
  const release = stub.hold();
  const connections = await Promise.all(
    Array.from({ length: count }, async () => {
      const connection = await Connection.open(api?.url ?? "");
      connection.send(searchBytes({ url: api?.url ?? "", token }, { keyword: "not taken", depth: 100 }));
      return connection;
    }),
  );
  await service.untilRunning(count);
  const entriesOf = async (kind: string) =>
    (await service.ledgerOf(organizationId)).filter((entry) => entry.kind === kind).length;
  // The API sees the replies and the resets only after both have happened.
  api?.kill("SIGSTOP");
  try {
    release();
    await service.until(async () => (await entriesOf("charge")) === count);
    for (const connection of connections) connection.reset();
  } finally {
    api?.kill("SIGCONT");
  }
  await service.until(async () => (await entriesOf("reversal")) === count);
  await service.until(async () => (await unpaidCalls(service)) === 10);
}

test("an answer that its caller did not take leaves its calls unpaid, and one that was taken does not", async () => {
  await takeNone(await service.organization(), 1);
  const other = await service.organization();
  expect((await service.search(other.token, { keyword: "taken", depth: 100 })).status).toBe(200);
  expect(await unpaidCalls(service)).toBe(10);
});

test("equal searches that share an answer leave its calls unpaid once, when none of them takes it", async () => {
  await takeNone(await service.organization(), 2);
  expect([stub.requests.length, await unpaidCalls(service)]).toEqual([10, 10]);
});

test("callers that wait for a provider that hangs, or disconnect meanwhile, are not refused once it answers again", async () => {
  const organization = await service.organization({ terms: { unpaidCalls: 2 } });
  stub.otherwise = hang;
  const searches = Array.from({ length: 30 }, (_, at) => {
    const signal = at % 2 === 0 ? AbortSignal.timeout(1_000) : undefined;
    const body = { keyword: `unanswered ${at}`, depth: 100 };
    return service.search(organization.token, body, signal && { signal }).catch(() => undefined);
  });
  await Promise.all(searches);
  await service.rest();
  expect(await unpaidCalls(service)).toBe(0);
  stub.otherwise = tenOrganic;
  const refused = await service.search(organization.token, { keyword: "again" });
  expect(refused.body.error?.details.reason).not.toBe("unpaid_calls");
});
