import { afterAll, expect, test } from "vitest";
import { removeHeartbeat, writeHeartbeat } from "../../../shared/queue/worker-heartbeats.ts";
import { endlessWindow, expectNoTrace, refusalIn } from "../../harness/fixtures/refusals.ts";
import { type Answer, type Organization, Service } from "../../harness/processes/service.ts";

/** Queries that the providers of no worker support: each test has the worker of `serper`, which has no mobile pages. */

const body = { keyword: "a", device: "mobile" };
const refused = { code: "query_rejected", details: { reason: "unsupported", field: "device" } };

const service = await Service.start({ workers: 0, end: afterAll });
await service.startWorker({ SERP_PROVIDERS: "serper", SERPER_API_KEY: "unused" });

/** The status of a mobile search, and whether it was admitted: then the ledger has its end, whatever the worker answered. */
async function searchOnce(): Promise<{ status: number; isAdmitted: boolean }> {
  const { token, organizationId } = await service.organization();
  const { status } = await service.search(token, body);
  await service.rest();
  return { status, isAdmitted: (await service.ledgerOf(organizationId)).length > 1 };
}
const untilAdmitted = () => service.until(async () => (await searchOnce()).isAdmitted);
const untilRefused = () =>
  service.until(async () => {
    const { status, isAdmitted } = await searchOnce();
    return status === 400 && !isAdmitted;
  });
await untilRefused();

test("a query that no worker supports is refused before credit, without a hold, a job or a request of the window", async () => {
  const poor = await service.organization({ creditMils: 0, terms: { ...endlessWindow, windowLimit: 1 } });
  const search = (token: string) => service.search(token, body);
  const answer = await expectNoTrace(service, poor, () => search(poor.token));
  expect(refusalIn(answer)).toEqual(refused);
  const keyed = await expectNoTrace(service, poor, () => service.search(poor.token, body, { key: "a" }));
  expect(refusalIn(keyed)).toEqual(refused);
  // It counts among the refused requests, which may be ten times as many as those of the window.
  for (let sent = 2; sent < 10; sent += 1) expect(refusalIn(await search(poor.token))).toEqual(refused);
  expect(refusalIn(await search(poor.token))).toMatchObject({ code: "rate_limited", details: { reason: "refused" } });
});

test("a query that one of two workers supports is admitted, and a key that was answered replays after that worker has left", async () => {
  const able = await service.startWorker();
  await untilAdmitted();
  const organization = await service.organization();
  const first = await untilAnswered(organization);
  await able.stop();
  await untilRefused();
  const again = await expectNoTrace(service, organization, () => repeat(organization));
  expect(again).toMatchObject({ status: 200, text: first.text });
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  const fresh = await expectNoTrace(service, organization, () => service.search(organization.token, body));
  expect(refusalIn(fresh)).toEqual(refused);
});

const repeat = ({ token }: Organization) => service.search(token, body, { key: "paid" });

/** Either worker may take a search; the one without mobile pages refuses it, which leaves the key free. */
async function untilAnswered(organization: Organization): Promise<Answer> {
  let answer = await repeat(organization);
  await service.until(async () => {
    if (answer.status !== 200) answer = await repeat(organization);
    return answer.status === 200;
  });
  await service.rest();
  return answer;
}

test("a query is admitted if a worker does not name its providers, and the worker that takes it refuses it", async () => {
  await service.until(async () => {
    // Written anew each time, so that it counts as long as the test takes.
    await writeHeartbeat(service.redis, "unnamed", {
      concurrency: 1,
      slotsCeiling: 1,
      runMs: 1,
      reachesPostgres: true,
      atMs: Date.now(),
    });
    return (await searchOnce()).isAdmitted;
  });
  const organization = await service.organization();
  expect(refusalIn(await service.search(organization.token, body))).toEqual(refused);
  expect(await service.ledgerOf(organization.organizationId)).toMatchObject([
    { kind: "grant" },
    { kind: "refund", mils: 0, reason: "query_rejected" },
  ]);
  await removeHeartbeat(service.redis, "unnamed");
});
