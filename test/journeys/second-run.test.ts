import { afterAll, expect, test } from "vitest";
import { compressAnswer } from "../../shared/compress-answer.ts";
import { readReply } from "../../shared/queue/replies.ts";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { decideSettlements } from "../../shared/credits/ledger.ts";
import { searchJob } from "../../shared/queue/search-job.ts";
import { createQueue } from "../../shared/queue/search-queue.ts";
import { Exposition } from "../harness/assertions/metrics.ts";
import { signIn } from "../harness/clients/page-visitor.ts";
import { startProxy } from "../harness/servers/proxy.ts";
import { Service } from "../harness/processes/service.ts";
import { refusal, startSerperStub } from "../harness/stubs/serper-stub.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";

/** A job that runs twice: the second run must neither reverse a delivered answer nor charge again. */

const stub = await startSerperStub(afterAll);
const service = await Service.start({
  apis: 0,
  environment: { ...stub.settings, SEARCH_DEADLINE_MS: "5000" },
  end: afterAll,
});
const postgres = await startProxy(service.databaseUrl, afterAll);
const api = await service.startApi({ DATABASE_URL: postgres.url });
const queue = createQueue({ url: service.redisServer.url });
afterAll(() => queue.close());

/** The job of a search, once a worker runs it. The job of an answered search may still be about to end. */
async function runningJob(keyword: string) {
  const find = async () => (await queue.getActive()).find((job) => searchJob.parse(job.data).query.keyword === keyword);
  await service.until(async () => (await find()) !== undefined);
  const job = await find();
  if (!job) throw new Error("the job ended although its provider does not answer");
  return job;
}

const kindsOf = async (organizationId: string) => (await service.ledgerOf(organizationId)).map(({ kind }) => kind);

test("a delivered answer stays charged when the second run of its job fails", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  await service.until(async () => (await service.search(token, { keyword: "warm" })).status === 200);
  await service.rest();
  const release = stub.hold();
  const search = service.search(token, { keyword: "delivered" });
  const job = await runningJob("delivered");
  // A job comes with the lease of its flight.
  expect(await service.redis.hget(`lease:${job.data.flight}`, "holder")).toBe(`${job.id}:1`);
  postgres.cut(); // The API can answer its caller, but cannot record the delivery.
  release();
  expect(await search).toMatchObject({ status: 200, body: { creditsCharged: 5 } });

  const options = { jobId: "again", removeOnComplete: true };
  await queue.add("search", { ...job.data, deadlineAtMs: 0 }, options);
  await service.until(async () => (await queue.getJob("again")) === undefined);
  postgres.mend();
  await service.rest();
  expect(await kindsOf(organizationId)).toEqual(["grant", "charge", "charge"]);
});

test("the second run of a job under an Idempotency-Key replies with the bytes and the charge of the first", async () => {
  const { token } = await service.organization({ creditMils: 100 });
  const release = stub.hold();
  const search = service.search(token, { keyword: "under a key" }, { key: "k" });
  const job = await runningJob("under a key");
  release();
  const first = await search;
  await queue.add("search", { ...job.data, inbox: "inbox:second" }, { jobId: "again", removeOnComplete: true });
  await service.until(async () => (await service.redis.xlen("inbox:second")) === 1);

  const [entry] = await service.redis.xrangeBuffer("inbox:second", "-", "+");
  const { outcome } = await readReply(entry?.[1] ?? []);
  expect(outcome).toMatchObject({ kind: "answer", requestId: first.body.requestId, chargedMils: 5 });
  expect(outcome.kind === "answer" && outcome.body.toString()).toBe(first.text);
});

test("a charge whose answer was lost is reversed by its API when the second run has no answer", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  stub.hold();
  const search = service.search(token, { keyword: "lost" });
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  const fields = await service.redis.hkeys(keysOf(organizationId).holds);
  const requestId = fields.find((field) => field !== "held") ?? "";
  await decideSettlements(service.database, [chargeOf(organizationId, { requestId })]);

  expect(await search).toMatchObject({ status: 504, body: { requestId } });
  await service.rest();
  expect(await kindsOf(organizationId)).toEqual(["grant", "charge", "reversal"]);
  await service.until(async () => (await service.usage(token)).body.creditBalanceMils === 100);
  const reversedMils = async () => (await Exposition.of(api)).value('reversed_mils_total{reason="engine_timeout"}');
  await service.until(async () => (await reversedMils()) === 5);
  expect((await Exposition.of(api)).all("reversals_total")).toMatchObject({ '{reason="engine_timeout"}': 1 });
});

/** Starts a search whose provider fails, after an earlier run of its job has charged it with an answer. @returns its answer. */
async function searchChargedBefore<Answer>(organizationId: string, keyword: string, send: () => Promise<Answer>) {
  const release = stub.hold(refusal(403, "Unauthorized."));
  const search = send();
  const { requestId, key } = searchJob.parse((await runningJob(keyword)).data);
  const answer = await compressAnswer(Buffer.from(JSON.stringify({ requestId, results: [] })));
  await decideSettlements(service.database, [chargeOf(organizationId, { requestId, key, answer })]);
  release();
  return search;
}

test("a search under a key that an earlier run charged never says that nothing was charged", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const query = { keyword: "lost under a key" };
  const search = () => service.search(token, query, { key: "k" });
  const lost = await searchChargedBefore(organizationId, query.keyword, search);
  expect(lost).toMatchObject({ status: 504, body: { error: { code: "engine_timeout" } } });
  expect(await search()).toMatchObject({ status: 200, body: { results: [] } });
  expect(await kindsOf(organizationId)).toEqual(["grant", "charge"]);
});

test("a search of the playground that was charged without an answer is not paid again when the person searches again", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  const person = await signIn(service, { token });
  const fields = { organization: organizationId, keyword: "lost on a page" };
  const search = (key: string) => person.post("/playground/search", { ...fields, key });
  const { status, text } = await searchChargedBefore(organizationId, fields.keyword, () => search("form-1"));
  expect(status).toBe(504);
  const [, key = ""] = /name="key" value="([^"]*)"/.exec(text) ?? [];
  expect(await search(key)).toMatchObject({ status: 200 });
  expect(await kindsOf(organizationId)).toEqual(["grant", "charge"]);
});
