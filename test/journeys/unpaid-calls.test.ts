import { afterAll, expect, test } from "vitest";
import { Connection } from "../abuse/callers/connection.ts";
import { searchBytes } from "../abuse/callers/requests.ts";
import { unpaidCalls } from "../harness/assertions/metrics.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { hang, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

/** Provider calls that callers leave unpaid, and those that are not the callers' fault. */

const stub = await startSerperStub();
const environment = { ...stub.settings, SEARCH_DEADLINE_MS: "4000", WORKER_CONCURRENCY: "100" };
const service = await Service.start({ environment });
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await Promise.all([service.stop(), stub.close()]);
});

/** Sends a search, and resets its connection once it is charged and before its answer is taken. */
async function takeNone({ organizationId, token }: Organization): Promise<void> {
  const [api] = service.apis;
  const release = stub.hold();
  const connection = await Connection.open(api?.url ?? "");
  connection.send(searchBytes({ url: api?.url ?? "", token }, { keyword: "not taken", depth: 100 }));
  await service.untilRunning(1);
  const has = async (kind: string) => (await service.ledgerOf(organizationId)).some((entry) => entry.kind === kind);
  // The API sees the replies and the resets only after both have happened.
  api?.kill("SIGSTOP");
  try {
    release();
    await service.until(() => has("charge"));
    connection.reset();
  } finally {
    api?.kill("SIGCONT");
  }
  await service.until(() => has("reversal"));
  await service.until(async () => (await unpaidCalls(service)) === 10);
}

test("an answer that its caller did not take leaves its calls unpaid, and one that was taken does not", async () => {
  await takeNone(await service.organization());
  const other = await service.organization();
  expect((await service.search(other.token, { keyword: "taken", depth: 100 })).status).toBe(200);
  expect(await unpaidCalls(service)).toBe(10);
});

test("callers that wait for a provider that hangs, or disconnect meanwhile, are not refused once it answers again", async () => {
  const organization = await service.organization({ terms: { unpaidCalls: 2 } });
  stub.otherwise = hang;
  const searches = Array.from({ length: 30 }, (_, at) => {
    const signal = at % 2 === 0 ? AbortSignal.timeout(1_000) : undefined;
    const body = { keyword: `unanswered ${at}`, depth: 100 };
    return service.search(organization.token, body, signal && { signal }).catch(() => undefined);
  });
  const before = await unpaidCalls(service);
  await Promise.all(searches);
  await service.rest();
  expect(await unpaidCalls(service)).toBe(before);
  stub.otherwise = tenOrganic;
  const refused = await service.search(organization.token, { keyword: "again" });
  expect(refused.body.error?.details.reason).not.toBe("unpaid_calls");
});
