import { afterAll, beforeAll, expect, test } from "vitest";
import { readReply } from "../../shared/queue/replies.ts";
import { keysOf } from "../../shared/credits/holds.ts";
import { decideSettlements } from "../../shared/credits/ledger.ts";
import { createQueue } from "../../shared/queue/search-queue.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { type Proxy, startProxy } from "../harness/servers/proxy.ts";
import { type Api, Service } from "../harness/processes/service.ts";

/** A job that is run twice, and the second run has no answer: who may give back what the first one charged. */

let service: Service;
let api: Api;
let wayToPostgres: Proxy;
let queue: ReturnType<typeof createQueue>;
beforeAll(async () => {
  service = await Service.start({ apis: 0, environment: { SEARCH_DEADLINE_MS: "3000" } });
  wayToPostgres = await startProxy(service.databaseUrl);
  api = await service.startApi({ DATABASE_URL: wayToPostgres.url });
  queue = createQueue({ url: service.redisServer.url });
});
afterAll(async () => {
  await queue.close();
  await service.stop();
  await wayToPostgres.close();
});

test("an answer that was delivered is not given back because its job failed the second time", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  await service.until(async () => (await service.search(token, { keyword: "warm" })).status === 200);
  await service.rest();
  const search = service.search(token, { keyword: "sandbox:slow=800" });
  await service.until(async () => (await queue.getActiveCount()) === 1);
  const [job] = await queue.getActive();
  wayToPostgres.cut(); // The API can answer, and cannot say so to Postgres.
  expect(await search).toMatchObject({ status: 200, body: { creditsCharged: 5 } });

  const options = { jobId: "again", removeOnComplete: true };
  await queue.add("search", { ...job?.data, deadlineAtMs: 0 }, options);
  await service.until(async () => (await queue.getJob("again")) === undefined);
  wayToPostgres.mend();
  await service.rest();
  const ledger = await service.ledgerOf(organizationId);
  expect(ledger.map(({ kind }) => kind)).toEqual(["grant", "charge", "charge"]);
});

test("a second run under a key brings the first one's answer, byte for byte, and says what that was charged", async () => {
  const { token } = await service.organization({ creditMils: 100 });
  const search = service.search(token, { keyword: "sandbox:slow=800" }, { key: "k" });
  await service.until(async () => (await queue.getActiveCount()) === 1);
  const [job] = await queue.getActive();
  const first = await search;
  await queue.add("search", { ...job?.data, inbox: "inbox:second" }, { jobId: "again", removeOnComplete: true });
  await service.until(async () => (await service.redis.xlen("inbox:second")) === 1);

  const [entry] = await service.redis.xrangeBuffer("inbox:second", "-", "+");
  const { outcome } = readReply(entry?.[1] ?? []);
  expect(outcome).toMatchObject({ kind: "answer", requestId: first.body.requestId, chargedMils: 5 });
  expect(outcome.kind === "answer" && outcome.body.toString()).toBe(first.text);
});

test("a charge whose answer was lost is given back by its API as soon as the second run has none", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const search = service.search(token, { keyword: "sandbox:timeout" });
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  const fields = await service.redis.hkeys(keysOf(organizationId).holds);
  const requestId = fields.find((field) => field !== "held") ?? "";
  await decideSettlements(service.database, [{ requestId, organizationId, wanted: "charge", priceMils: 5 }]);

  expect(await search).toMatchObject({ status: 504, body: { requestId } });
  await service.rest();
  const ledger = await service.ledgerOf(organizationId);
  expect(ledger.map(({ kind }) => kind)).toEqual(["grant", "charge", "reversal"]);
  await service.until(async () => (await service.usage(token)).body.creditBalanceMils === 100);
  const givenMils = async () => (await Exposition.of(api)).value('reversed_mils_total{reason="engine_timeout"}');
  await service.until(async () => (await givenMils()) === 5);
  expect((await Exposition.of(api)).all("reversals_total")).toMatchObject({ '{reason="engine_timeout"}': 1 });
});
