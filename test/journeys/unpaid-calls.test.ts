import { afterEach, beforeEach, expect, test } from "vitest";
import { largestAnswer } from "../abuse/callers/answer-sizes.ts";
import { Connection } from "../abuse/callers/connection.ts";
import { searchBytes } from "../abuse/callers/requests.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
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

async function unpaidCalls(): Promise<number> {
  const seen = await Promise.all([...service.apis, ...service.workers].map((process) => Exposition.of(process)));
  return seen.reduce((sum, exposition) => sum + (exposition.value("unpaid_provider_calls_total") ?? 0), 0);
}

/** Sends a search whose answer is larger than what is read of it. @returns what resets the connection. */
async function readLittle({ token }: Organization, keyword: string): Promise<() => void> {
  const url = service.apis[0]?.url ?? "";
  const connection = await Connection.open(url);
  connection.send(searchBytes({ url, token }, { keyword, depth: 100 }));
  await connection.readBytes(1, 60_000);
  return () => connection.reset();
}

test("an answer that its caller did not take leaves its calls unpaid, and one that was taken does not", async () => {
  const organization = await service.organization();
  expect((await service.search(organization.token, { keyword: "taken", depth: 100 })).status).toBe(200);
  stub.otherwise = largestAnswer;
  const reset = await readLittle(organization, "left");
  reset();
  await service.until(async () => (await unpaidCalls()) === 10);
});

test("equal searches that share an answer leave its calls unpaid once, when none of them takes it", async () => {
  const organization = await service.organization();
  const release = stub.hold(largestAnswer);
  const searches = ["same", "same"].map((keyword) => readLittle(organization, keyword));
  await service.untilRunning(2);
  release();
  const [first, second] = await Promise.all(searches);
  first?.();
  await service.until(async () => (await service.ledgerOf(organization.organizationId)).length === 4);
  second?.();
  await service.until(async () => (await unpaidCalls()) === 10);
  expect(stub.requests).toHaveLength(10);
});

test("callers that wait for a provider that hangs, or hang up meanwhile, are not refused once it answers again", async () => {
  const organization = await service.organization({ terms: { unpaidCalls: 2 } });
  stub.otherwise = hang;
  const searches = Array.from({ length: 30 }, (_, at) => {
    const signal = at % 2 === 0 ? AbortSignal.timeout(1_000) : undefined;
    const body = { keyword: `unanswered ${at}`, depth: 100 };
    return service.search(organization.token, body, signal && { signal }).catch(() => undefined);
  });
  await Promise.all(searches);
  await service.rest();
  expect(await unpaidCalls()).toBe(0);
  stub.otherwise = tenOrganic;
  const refused = await service.search(organization.token, { keyword: "again" });
  expect(refused.body.error?.details.reason).not.toBe("unpaid_calls");
});
