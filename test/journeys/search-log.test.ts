import { afterAll, expect, test } from "vitest";
import { newId } from "../../shared/ids.ts";
import { createQueue } from "../../shared/queue/search-queue.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";
import { searchJob } from "../harness/fixtures/queries.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { loggedSearches } from "../harness/servers/logged-searches.ts";
import { startSerperStub } from "../harness/stubs/serper-stub.ts";

/** The search log beside the searches of a running service: what it has of each end, and that no search depends on it. */

const stub = await startSerperStub(afterAll);
const service = await Service.start({ environment: stub.settings, end: afterAll });

/** The rows of an organization, oldest first, once there are so many. */
async function rowsOf(organizationId: string, count: number) {
  const read = () => loggedSearches(service.database, organizationId);
  await service.until(async () => (await read()).length === count);
  return read();
}

test("an answered search is logged with its token and its call, and a replay adds nothing", async () => {
  const { organizationId, token, tokenId } = await service.organization();
  const body = { keyword: "garden pump", location: "Germany", language: "de" };
  const answer = await service.search(token, body, { key: "once" });
  expect(await service.search(token, body, { key: "once" })).toMatchObject({ status: 200, text: answer.text });
  const plain = await service.search(token, { keyword: "tea" });
  const [keyed, last] = await rowsOf(organizationId, 2);
  expect(keyed).toMatchObject({
    requestId: answer.requestId,
    token: { tokenId },
    keyHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    query: { keyword: "garden pump", location: "Germany", device: "desktop", language: "German", depth: 10 },
    work: { source: "provider", provider: "serper", calls: [{ provider: "serper", outcome: "ok" }] },
  });
  expect(last).toMatchObject({ requestId: plain.requestId, keyHash: null, query: { keyword: "tea" } });
});

test("a search whose caller disconnected is logged once, with the call that was under way", async () => {
  const { organizationId, token } = await service.organization();
  const release = stub.hold();
  const disconnect = new AbortController();
  const search = service.search(token, { keyword: "gone" }, { signal: disconnect.signal }).catch(() => "disconnected");
  await service.until(async () => stub.requests.some(({ body }) => body.q === "gone"));
  disconnect.abort();
  await search;
  const [known] = await rowsOf(organizationId, 1);
  expect(known).toMatchObject({ query: { keyword: "gone" }, work: null });
  release();
  await service.until(async () => (await rowsOf(organizationId, 1))[0]?.work !== null);
  expect(await rowsOf(organizationId, 1)).toMatchObject([{ durationMs: known?.durationMs, work: { calls: [{}] } }]);
});

test("a search during which the clock of Redis was set ahead by years is logged with a duration that it had", async () => {
  const { organizationId, tokenId } = await service.organization();
  const queue = createQueue({ url: service.redisServer.url });
  const requestId = newId("req");
  await queue.add("search", searchJob({ requestId, organizationId, tokenId, enqueuedAtMs: 0 }), { jobId: requestId });
  const [logged] = await rowsOf(organizationId, 1);
  expect(logged).toMatchObject({ requestId });
  expect(logged?.durationMs).toBeLessThan(60_000);
  await queue.close();
});

test("while the log cannot be written, searches are answered and charged as ever, and their rows follow", async () => {
  const { organizationId, token } = await service.organization();
  await asOwner(service.databaseUrl, async (owner) => {
    await owner.query("begin");
    await owner.query("lock table search_log");
    for (const keyword of ["one", "two", "three"]) {
      expect(await service.search(token, { keyword })).toMatchObject({ status: 200 });
    }
    await service.rest();
    await owner.query("rollback");
  });
  const rows = await rowsOf(organizationId, 3);
  expect(rows.map(({ query }) => query.keyword)).toEqual(["one", "two", "three"]);
  const [worker] = service.workers;
  const counted = worker && (await Exposition.of(worker)).all("search_log_rows_total");
  expect(counted).toMatchObject({ '{outcome="dropped"}': 0 });
});

test("with SEARCH_LOG_DAYS=0 nothing is written, and what was written is removed", async () => {
  const { organizationId, token } = await service.organization();
  await service.search(token, { keyword: "before" });
  await rowsOf(organizationId, 1);
  const off = { SEARCH_LOG_DAYS: "0" };
  await Promise.all(service.workers.splice(0).map((worker) => worker.destroy()));
  const worker = await service.startWorker({ ...stub.settings, ...off });
  await worker.line("removed old days of the search log");
  expect(await service.search(token, { keyword: "after" })).toMatchObject({ status: 200 });
  await service.rest();
  await worker.stop();
  expect(await rowsOf(organizationId, 0)).toEqual([]);
});
