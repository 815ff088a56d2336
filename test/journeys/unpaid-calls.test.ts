import { afterAll, expect, test } from "vitest";
import { Connection } from "../harness/clients/connection.ts";
import { searchBytes } from "../abuse/callers/requests.ts";
import { seesWorkers, unpaidCalls } from "../harness/assertions/metrics.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { hang, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

/** Provider calls that callers leave unpaid, and those that are not the callers' fault. */

const stub = await startSerperStub();
const service = await Service.start({ environment: { ...stub.settings, WORKER_CONCURRENCY: "100" } });
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await Promise.all([service.stop(), stub.close()]);
});

/** Sends equal searches, and resets their connections once they are charged and before their answers are taken. */
async function takeNone({ organizationId, token }: Organization, body: object, searches = 1): Promise<void> {
  const [api] = service.apis;
  const release = stub.hold();
  const connections: Connection[] = [];
  for (let opened = 0; opened < searches; opened += 1) connections.push(await Connection.open(api?.url ?? ""));
  for (const connection of connections) connection.send(searchBytes({ url: api?.url ?? "", token }, body));
  await service.untilRunning(searches);
  const has = async (kind: string) =>
    (await service.ledgerOf(organizationId)).filter((entry) => entry.kind === kind).length === searches;
  // The API sees the replies and the resets only after both have happened.
  api?.kill("SIGSTOP");
  try {
    release();
    await service.until(() => has("charge"));
    for (const connection of connections) connection.reset();
  } finally {
    api?.kill("SIGCONT");
  }
  await service.until(() => has("reversal"));
  await service.rest();
}

test("an answer that its caller did not take leaves its calls unpaid, and one that was taken does not", async () => {
  await takeNone(await service.organization(), { keyword: "not taken", depth: 100 });
  expect(await unpaidCalls(service)).toBe(10);
  const other = await service.organization();
  expect((await service.search(other.token, { keyword: "taken", depth: 100 })).status).toBe(200);
  expect(await unpaidCalls(service)).toBe(10);
});

test("each of the equal searches that share one call counts if its answer is not taken, until the budget is used up", async () => {
  const [followers, before] = [30, await unpaidCalls(service)];
  const terms = { concurrency: followers + 1, unpaidCalls: followers };
  const organization = await service.organization({ terms });
  const asked = stub.requests.length;
  await takeNone(organization, { keyword: "shared and not taken" }, followers + 1);
  expect([stub.requests.length - asked, (await unpaidCalls(service)) - before]).toEqual([1, followers + 1]);
  const refused = await service.search(organization.token, { keyword: "shared and not taken" });
  expect(refused.body.error?.details.reason).toBe("unpaid_calls");
});

test("callers that wait for a provider that hangs, or disconnect meanwhile, are not refused once it answers again", async () => {
  const organization = await service.organization({ terms: { unpaidCalls: 2 } });
  const impatient = await service.startApi({ SEARCH_DEADLINE_MS: "4000" });
  await service.until(() => seesWorkers(impatient));
  const api = service.apis.indexOf(impatient);
  stub.otherwise = hang;
  const searches = Array.from({ length: 30 }, (_, at) => {
    const signal = at % 2 === 0 ? AbortSignal.timeout(1_000) : undefined;
    const body = { keyword: `unanswered ${at}`, depth: 100 };
    return service.search(organization.token, body, { api, ...(signal && { signal }) }).catch(() => undefined);
  });
  const before = await unpaidCalls(service);
  await Promise.all(searches);
  await service.rest();
  expect(await unpaidCalls(service)).toBe(before);
  stub.otherwise = tenOrganic;
  const refused = await service.search(organization.token, { keyword: "again" });
  expect(refused.body.error?.details.reason).not.toBe("unpaid_calls");
});
