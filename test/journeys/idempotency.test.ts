import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { summed } from "../harness/assertions/metrics.ts";
import { Agent } from "../harness/clients/agent.ts";
import { type PageVisitor, signIn } from "../harness/clients/page-visitor.ts";
import { type Answer, type Organization, Service } from "../harness/processes/service.ts";
import { refusal, reply, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

/** Searches through two APIs are charged once under a key, by their pages if the plan says so, and from one balance that all ways to read it show. */

const apis = [0, 1];
const stub = await startSerperStub(afterAll);
const service = await Service.start({ apis: apis.length, environment: stub.settings, end: afterAll });
beforeEach(() => {
  stub.otherwise = tenOrganic;
});

/** Searches that hold credit or wait for the first request of their key. A `balance_missing` admission is not one: it is tried again. */
async function countAdmissions(): Promise<number> {
  const of = (outcome: string) => summed(service.apis, `admissions_total{outcome="${outcome}"}`);
  return (await of("held")) + (await of("waiting"));
}

/** Sends all searches while the provider holds its reply back, so that all but the first wait for the first. */
async function sendTogether(count: number, send: (n: number) => Promise<Answer>, then = tenOrganic): Promise<Answer[]> {
  const before = await countAdmissions();
  const release = stub.hold(then);
  const answers = Array.from({ length: count }, (_, n) => send(n));
  await service.until(async () => (await countAdmissions()) === before + count);
  release();
  return Promise.all(answers);
}

/** How often the APIs have looked for keys in Postgres, each time for a whole batch. */
const lookUps = () => summed(service.apis, 'key_lookup_duration_seconds_count{of="keys"}');

test("a key that was used for another query is refused, while the first request runs and afterwards, with each token", async () => {
  const { organizationId, token } = await service.organization();
  const { token: another } = await service.issue(organizationId);
  const release = stub.hold();
  const first = service.search(token, { keyword: "the first" }, { key: "mine" });
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  const early = await service.search(token, { keyword: "other" }, { key: "mine" });
  expect(early.body.error.details).toEqual({ reason: "idempotency_key_reused" });
  release();
  expect((await first).status).toBe(200);
  const late = await service.search(another, { keyword: "other" }, { key: "mine" });
  expect(late).toMatchObject({
    status: 400,
    body: { error: { code: "bad_request", details: { reason: "idempotency_key_reused" } } },
  });
  expect((await service.search(another, { keyword: "the first" }, { key: "mine" })).text).toBe((await first).text);
});

test("repeats that wait for the first request share its failure, and the key can be used again afterwards", async () => {
  const { organizationId, token } = await service.organization();
  const send = () => service.search(token, { keyword: "a failure" }, { key: "bad" });
  const answers = await sendTogether(10, send, refusal(503, "Down for maintenance"));
  stub.otherwise = tenOrganic;
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([502]));
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "refund"]);

  const other = await service.search(token, { keyword: "something else" }, { key: "bad" });
  expect(other).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
});

test("two organizations can use the same key, and each gets its own answer", async () => {
  const one = await service.organization();
  const two = await service.organization();
  const release = stub.hold();
  const first = service.search(one.token, { keyword: "tea" }, { key: "shared" });
  await service.untilRunning(1);
  const second = service.search(two.token, { keyword: "milk" }, { key: "shared" });
  await Promise.race([second, service.untilRunning(2)]);
  release();
  for (const answer of [await first, await second])
    expect(answer).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
  expect((await second).body.requestId).not.toBe((await first).body.requestId);
});

test("after Redis lost everything, a repeat gets the same bytes, and neither the provider nor the credit is asked again", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 5 });
  const first = await service.search(token, { keyword: "tea" }, { key: "k" });
  await service.rest();
  const { length: asked } = stub.requests;
  await service.redis.flushall();

  const repeat = await service.search(token, { keyword: "tea" }, { key: "k", api: 1 });
  expect({ status: repeat.status, text: repeat.text }).toEqual({ status: 200, text: first.text });
  expect(repeat.headers.get("idempotency-replayed")).toBe("true");
  expect(repeat.requestId).toBe(first.body.requestId);
  const other = await service.search(token, { keyword: "milk" }, { key: "k" });
  expect(other).toMatchObject({ status: 400, body: { error: { details: { reason: "idempotency_key_reused" } } } });
  expect(stub.requests).toHaveLength(asked);
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "charge"]);
  expect(await service.verify()).toMatchObject({ ok: true });
});

test("when Redis is lost while the first request runs, a repeat runs as well, and both get the answer that was charged", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 10 });
  const release = stub.hold();
  const first = service.search(token, { keyword: "lost" }, { key: "k" });
  await service.untilRunning(1);
  await service.redis.flushall();
  const repeat = service.search(token, { keyword: "lost" }, { key: "k", api: 1 });
  await service.until(async () => (await service.holdsOf(organizationId)).open === 1);
  await service.untilRunning(1);
  release();

  const answers = [await first, await repeat];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ headers }) => headers.get("idempotency-replayed"))).toHaveLength(1);
  await service.rest();
  const entries = await service.ledgerOf(organizationId);
  expect(entries.map(({ kind, reason }) => (kind === "grant" ? kind : `${kind} ${reason ?? ""}`)).toSorted()).toEqual([
    "charge ",
    "grant",
    "refund already_paid",
  ]);
});

test("Redis forgets a key seconds after its search has ended, and never has the answer", async () => {
  const { organizationId, token } = await service.organization();
  const first = await service.search(token, { keyword: "tea" }, { key: "k" });
  await service.rest();
  const pattern = keysOf(organizationId).record("*").replace(/[{}]/g, "\\$&");
  const [record = ""] = await service.redis.keys(pattern);
  expect(await service.redis.memory("USAGE", record)).toBeLessThan(1_000);
  expect(await service.redis.pttl(record)).toBeLessThanOrEqual(protocolTimes.idempotencyEndMs);
  expect(Object.keys(await service.redis.hgetall(record)).toSorted()).toEqual(["answered", "fingerprint", "request"]);
  await service.until(async () => (await service.redis.keys(pattern)).length === 0);
  expect((await service.search(token, { keyword: "tea" }, { key: "k" })).text).toBe(first.text);
  expect(await service.redis.keys(pattern)).toEqual([]);
});

test("searches under keys of an organization without credit cost Postgres a few look-ups a second, however many come", async () => {
  const { token } = await service.organization({ creditMils: 5 });
  const paid = await service.search(token, { keyword: "tea" }, { key: "paid" });
  await service.rest();
  const [before, sentAtMs] = [await lookUps(), performance.now()];
  await Promise.all(
    Array.from({ length: 40 }, async (_, at) => {
      for (let n = 0; n < 25; n += 1) {
        const answer = await service.search(token, { keyword: "x" }, { key: `${at}-${n}`, api: at % 2 });
        expect(answer.status).toBe(402);
      }
    }),
  );
  const again = await service.search(token, { keyword: "tea" }, { key: "paid" });
  expect(again.text).toBe(paid.text);
  const seconds = (performance.now() - sentAtMs) / 1_000;
  // Each API asks ten times a second; and for each of the first searches, before it has refused the organization once.
  expect((await lookUps()) - before).toBeLessThanOrEqual(2 * (10 * seconds + 40));
});

describe("a plan with a price per page", () => {
  const priced = { creditMils: 100, terms: { pricePerPageMils: 3 } };
  const calls = (keyword: string) => stub.requests.filter(({ body }) => body["q"] === keyword).length;

  test.each([
    { depth: 1, pages: 1 },
    { depth: 10, pages: 1 },
    { depth: 11, pages: 2 },
    { depth: 100, pages: 10 },
  ])("charges depth $depth as $pages pages, in one amount", async ({ depth, pages }) => {
    const { organizationId, token } = await service.organization(priced);
    const keyword = `priced by depth ${depth}`;
    const { status, body } = await service.search(token, { keyword, depth });
    expect({ status, charged: body.creditsCharged, left: body.creditsRemaining }).toEqual({
      status: 200,
      charged: 3 * pages,
      left: 100 - 3 * pages,
    });
    expect(calls(keyword)).toBe(pages);
    await service.rest();
    expect(await service.ledgerOf(organizationId)).toMatchObject([
      { kind: "grant", mils: 100 },
      { kind: "charge", mils: -3 * pages, requestId: body.requestId },
    ]);
    expect((await service.usage(token)).body.creditBalanceMils).toBe(100 - 3 * pages);
    expect(await service.verify()).toMatchObject({ ok: true });
  });

  test("holds the whole price at once, so that no search starts on the credit of another's later pages", async () => {
    const { organizationId, token } = await service.organization({ ...priced, creditMils: 32 });
    const release = stub.hold();
    const deep = service.search(token, { keyword: "held as one", depth: 100 });
    await service.until(async () => (await service.holdsOf(organizationId)).heldMils === 30);
    const { status, body } = await service.search(token, { keyword: "on the rest" }, { api: 1 });
    expect(status).toBe(402);
    expect(body.error.details).toMatchObject({ priceMils: 3, availableMils: 2, heldMils: 30 });
    release();
    expect((await deep).body.creditsCharged).toBe(30);
  });

  test("charges the depth that was asked for where the engine has fewer results, and a repeat under its key nothing", async () => {
    const { organizationId, token } = await service.organization(priced);
    const keyword = "one page without results";
    stub.next.push(reply(200, { organic: [], credits: 1 }));
    const search = () => service.search(token, { keyword, depth: 30 }, { key: "short" });
    const first = await search();
    expect([first.body.creditsCharged, first.body.results.length, calls(keyword)]).toEqual([9, 0, 1]);
    expect((await search()).text).toBe(first.text);
    await service.rest();
    expect((await service.ledgerOf(organizationId)).slice(1)).toMatchObject([{ kind: "charge", mils: -9 }]);
  });

  test("gives the whole price back where one page fails", async () => {
    const { organizationId, token } = await service.organization(priced);
    stub.next.push(tenOrganic, refusal(400, "Bad"));
    const { status } = await service.search(token, { keyword: "half an answer", depth: 20 });
    expect(status).toBe(502);
    await service.rest();
    expect((await service.ledgerOf(organizationId)).slice(1)).toMatchObject([{ kind: "refund", mils: 0 }]);
    expect((await service.usage(token)).body.creditBalanceMils).toBe(100);
  });
});

describe("REST, MCP and the account pages show the same balance at the same moment, at every API process:", () => {
  const rounds = 12;
  let organization: Organization;
  let agents: Agent[];
  let visitors: PageVisitor[];
  beforeAll(async () => {
    organization = await service.organization({ creditMils: 100_000 });
    agents = await Promise.all(apis.map((api) => Agent.connect(service, organization.token, { api })));
    visitors = await Promise.all(apis.map((api) => signIn(service, organization, { api })));
  });
  afterAll(() => Promise.all(agents.map((agent) => agent.close())));

  function agentAt(api: number): Agent {
    const agent = agents[api];
    if (!agent) throw new Error(`there is no agent at the API ${api}`);
    return agent;
  }

  /** What the account pages show as available, in mils. */
  async function shownAt(api: number): Promise<number> {
    await service.redis.del(`pages:${organization.organizationId}`); // The window of the page is not the subject here.
    const { status, text = "" } = (await visitors[api]?.get("/billing")) ?? {};
    if (status !== 200) throw new Error(`the page was answered ${status}`);
    const shown = /Available<\/h2>\s*<p class="figure"><data value="(\d+)"/.exec(text)?.[1];
    return Number(shown);
  }

  /** Every way to read the balance, as a caller uses it through one API. A new one gets a line here. */
  const balanceAt: Record<string, (api: number) => Promise<number>> = {
    REST: async (api) => (await service.usage(organization.token, api)).body.creditBalanceMils,
    MCP: async (api) => (await agentAt(api).call("usage.get")).body.creditBalanceMils,
    page: shownAt,
  };

  /** Every way to search. @returns whether the search was answered. */
  const searchAt: ((api: number, keyword: string) => Promise<boolean>)[] = [
    async (api, keyword) => (await service.search(organization.token, { keyword }, { api })).status === 200,
    async (api, keyword) => !(await agentAt(api).call("serp.search", { keyword })).isError,
  ];

  /** The balance that each way of each process shows at this moment, in mils. */
  async function readAll(): Promise<Record<string, number>> {
    const reading = Object.entries(balanceAt).flatMap(([way, read]) =>
      apis.map(async (api) => [`${way} ${api}`, await read(api)] as const),
    );
    return Object.fromEntries(await Promise.all(reading));
  }

  async function expectSame(mils: number): Promise<void> {
    const shown = await readAll();
    expect(shown).toEqual(Object.fromEntries(Object.keys(shown).map((way) => [way, mils])));
  }

  test("under load REST, MCP and the page show balances of the same moment", async () => {
    await expectSame(100_000);
    const ending = new AbortController();
    const load = Array.from({ length: 4 }, async (_, at) => {
      const answered: (boolean | undefined)[] = [];
      while (!ending.signal.aborted) {
        const turn = answered.length;
        answered.push(await searchAt[at % searchAt.length]?.(turn % apis.length, `load ${at} ${turn}`));
      }
      return answered;
    });
    // Every search is answered and charged, so the balance only falls: a reading between two others lies between them.
    const readings = [await service.usage(organization.token)];
    for (let round = 0; round < rounds; round += 1) {
      const shown = Object.entries(await readAll());
      readings.push(await service.usage(organization.token));
      const [above = Number.NaN, below = Number.NaN] = readings.slice(-2).map(({ body }) => body.creditBalanceMils);
      const outside = shown.filter(([, mils]) => !(mils <= above && mils >= below));
      expect({ above, below, outside }).toEqual({ above, below, outside: [] });
    }
    ending.abort();
    const answered = await Promise.all(load);
    expect(new Set(answered.flat())).toEqual(new Set([true]));
    await service.rest();
    await expectSame(100_000 - 5 * answered.flat().length);
    expect(await service.verify()).toMatchObject({ ok: true });
  });
});
