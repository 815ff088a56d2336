import { afterAll, expect, test } from "vitest";
import { Exposition } from "../harness/assertions/metrics.ts";
import { startProxy } from "../harness/servers/proxy.ts";
import { reply, refusal, startSerperStub } from "../harness/stubs/serper-stub.ts";
import { failureKinds } from "../../worker/providers/provider.ts";
import { Service } from "../harness/processes/service.ts";

const stub = await startSerperStub(afterAll);
const environment = { SERP_PROVIDERS: "serper", SERPER_BASE_URL: stub.url, SERPER_API_KEY: "key" };
const service = await Service.start({ apis: 0, workers: 0, environment, end: afterAll });
const [wayToPostgres, wayToRedis] = await Promise.all([
  startProxy(service.databaseUrl, afterAll),
  startProxy(service.redisServer.url, afterAll),
]);
const ways = { DATABASE_URL: wayToPostgres.url, REDIS_URL: wayToRedis.url };
const [api, worker] = await Promise.all([service.startApi(ways), service.startWorker(ways)]);

const ofApi = () => Exposition.of(api);
const ofWorker = () => Exposition.of(worker);

const untilShown = (of: () => Promise<Exposition>, series: string, value: number) =>
  expect.poll(async () => (await of()).value(series)).toBe(value);

test("before the first search every counter is 0 for every outcome, so that a rate includes the first increase", async () => {
  for (const exposition of [await ofApi(), await ofWorker()]) {
    const repeats = ["stored_answer", "completed", "waiting"];
    const refusals = [
      "insufficient_credit",
      "spending_limit",
      "key_reused",
      "balance_missing",
      "shed",
      "limited",
      "concurrency_limited",
      "unpaid_calls",
    ];
    const admissions = ["held", ...repeats, ...refusals, "unknown"].map((outcome) => [`{outcome="${outcome}"}`, 0]);
    expect(exposition.all("admissions_total")).toEqual(Object.fromEntries(admissions));
    expect(exposition.all("deliveries_total")).toEqual({
      '{outcome="delivered"}': 0,
      '{outcome="caller_disconnected"}': 0,
      '{outcome="too_late"}': 0,
    });
    expect(exposition.value('settlements_total{kind="charge",reason="delivered"}')).toBe(0);
    expect(exposition.value('settlements_total{kind="refund",reason="engine_timeout"}')).toBe(0);
    expect(new Set(Object.values(exposition.all("settlements_total")))).toEqual(new Set([0]));
    expect(exposition.value("charged_mils_total")).toBe(0);
    expect(exposition.value('reversals_total{reason="undelivered"}')).toBe(0);
    expect(exposition.value('reversed_mils_total{reason="undelivered"}')).toBe(0);
    expect(exposition.value("holds_swept_total")).toBe(0);
    expect(exposition.value("settlement_retries_total")).toBe(0);
    const saved = { '{from="shared"}': 0, '{from="cache"}': 0 };
    expect(exposition.all("provider_cost_saved_micro_usd_total")).toEqual(saved);
    const errors = exposition.all("background_errors_total");
    expect(errors).toMatchObject({ '{where="queue"}': 0, '{where="watchdog"}': 0 });
    expect(new Set(Object.values(errors))).toEqual(new Set([0]));
  }
  const failures = (await ofWorker()).all("maintenance_failures_total");
  expect(failures).toMatchObject({ '{step="sweep"}': 0, '{step="reconcile"}': 0, '{step="low_balances"}': 0 });
});

test("a worker shows each provider that it asks, with every outcome that a call can have at 0, and an API none", async () => {
  expect((await ofWorker()).all("provider_configured")).toEqual({ '{provider="serper"}': 1 });
  expect((await ofApi()).all("provider_configured")).toEqual({});
  const outcomes = ["ok", ...Object.keys(failureKinds).filter((kind) => kind !== "busy")];
  const calls = outcomes.map((outcome) => [`{outcome="${outcome}",provider="serper"}`, 0]);
  expect((await ofWorker()).all("provider_calls_total")).toEqual(Object.fromEntries(calls));
});

const workersOwn = ["ledger_drift_mils", "holds_open", "holds_held_mils"];
const apisOwn = ["workers_reporting", "queue_depth", "queue_oldest_age_seconds", "redis_memory_used_bytes"];

test("a gauge is exported only by the process that measures it", async () => {
  await untilShown(ofWorker, "ledger_drift_mils", 0);
  await untilShown(ofWorker, "holds_open", 0);
  await untilShown(ofWorker, "holds_held_mils", 0);
  await untilShown(ofApi, "workers_reporting", 1);
  await untilShown(ofApi, "queue_depth", 0);
  await untilShown(ofApi, "queue_oldest_age_seconds", 0);
  await expect.poll(async () => (await ofApi()).value("redis_memory_used_bytes")).toBeGreaterThan(0);
  expect([await shownBy(ofApi, workersOwn), await shownBy(ofWorker, apisOwn)]).toEqual([[], []]);
});

test("searches are counted by outcome in the process that admits, settles, runs and delivers them", async () => {
  const { token } = await service.organization();
  const poor = await service.organization({ creditMils: 4 });
  const statuses = [
    await service.search(token, { keyword: "one" }),
    await service.search(token, { keyword: "two" }, { key: "k" }),
    await service.search(token, { keyword: "two" }, { key: "k" }),
    await service.search(token, { keyword: "three", depth: 15 }),
    await failingSearch(token),
    await service.search(poor.token, { keyword: "four" }),
    await service.search(token, { keyword: "five", depth: 0 }),
    await service.search("none", { keyword: "six" }),
    await service.send("/v1/customers/77"),
  ].map(({ status }) => status);
  expect(statuses).toEqual([200, 200, 200, 200, 502, 402, 400, 401, 404]);
  await service.rest();

  await untilShown(ofApi, 'deliveries_total{outcome="delivered"}', 4);
  const exposition = await ofApi();
  expect(nonZero(exposition.all("admissions_total"))).toEqual({
    '{outcome="held"}': 4,
    '{outcome="stored_answer"}': 1,
    '{outcome="insufficient_credit"}': 1,
    '{outcome="balance_missing"}': 2,
  });
  // Those that count in the objectives begin at 0, so that the first failures of a process do.
  expect(exposition.all("http_request_duration_seconds_count")).toEqual({
    '{route="/v1/serp/search",status="200"}': 4,
    '{route="/v1/serp/search",status="400"}': 1,
    '{route="/v1/serp/search",status="401"}': 1,
    '{route="/v1/serp/search",status="402"}': 1,
    '{route="/v1/serp/search",status="500"}': 0,
    '{route="/v1/serp/search",status="503"}': 0,
    '{route="/v1/serp/search",status="504"}': 0,
    '{route="/v1/serp/search",status="502"}': 1,
    ...Object.fromEntries([200, 500, 502, 503, 504].map((status) => [`{route="/mcp",status="${status}"}`, 0])),
    '{route="none",status="404"}': 1,
  });

  const worked = await ofWorker();
  expect(nonZero(worked.all("settlements_total"))).toEqual({
    '{kind="charge",reason="delivered"}': 3,
    '{kind="refund",reason="provider_refused"}': 1,
  });
  expect(worked.value("charged_mils_total")).toBe(15);
  expect(nonZero(worked.all("provider_calls_total"))).toEqual({
    '{outcome="account_refused",provider="serper"}': 1,
    '{outcome="ok",provider="serper"}': 4,
  });
  expect(worked.value('provider_cost_micro_usd_total{provider="serper"}')).toBe(4_000);
  expect(worked.value('provider_call_duration_seconds_count{provider="serper"}')).toBe(5);
  expect(worked.value("queue_wait_duration_seconds_count")).toBe(4);
  expect(worked.value("search_run_duration_seconds_count")).toBe(4);
  await untilShown(ofWorker, "ledger_drift_mils", 0);
});

async function failingSearch(token: string) {
  stub.next.push(refusal(403, "Unauthorized."));
  return service.search(token, { keyword: "refused" });
}

test("an open hold is measured while its search runs, and a disconnected caller is counted as a refund", async () => {
  const { token } = await service.organization();
  let answer: () => void = () => undefined;
  stub.next.push((request, response) => {
    answer = () => reply(200, { organic: [], credits: 1 })(request, response);
  });
  const caller = new AbortController();
  const search = service.search(token, { keyword: "slow" }, { signal: caller.signal }).catch(() => undefined);
  // The gauge may still show the hold of an earlier search.
  await service.until(async () => stub.requests.some(({ body }) => body.q === "slow"));
  await untilShown(ofWorker, "holds_open", 1);
  await untilShown(ofWorker, "holds_held_mils", 5);
  caller.abort();
  await search;
  await untilShown(ofWorker, "holds_open", 0);
  await untilShown(ofApi, 'settlements_total{kind="refund",reason="caller_disconnected"}', 1);
  expect((await ofApi()).value('http_request_duration_seconds_count{route="/v1/serp/search",status="499"}')).toBe(1);
  answer();
});

test("a gauge is absent while its server is unreachable, and returns with it", async () => {
  const shown = async () => [...(await shownBy(ofWorker, workersOwn)), ...(await shownBy(ofApi, apisOwn))];
  const untilShownAre = (names: string[]) => expect.poll(shown).toEqual(names);
  await untilShownAre([...workersOwn, ...apisOwn]);
  wayToPostgres.cut();
  // Holds are in Redis.
  await untilShownAre([...workersOwn.filter((name) => name.startsWith("holds_")), ...apisOwn]);
  wayToPostgres.mend();
  await untilShownAre([...workersOwn, ...apisOwn]);
  wayToRedis.cut();
  await untilShownAre([]);
  wayToRedis.mend();
  await untilShownAre([...workersOwn, ...apisOwn]);
});

const shownBy = async (of: () => Promise<Exposition>, names: string[]) => {
  const exposition = await of();
  return names.filter((name) => exposition.value(name) !== undefined);
};

test("no metric has an organization, a token, a keyword, a path or a request as a label", async () => {
  const { organizationId, token, tokenId } = await service.organization();
  await service.search(token, { keyword: "canary-keyword", targetDomain: "canary.example" }, { key: "canary-key" });
  await service.send("/v1/canary-path");
  await service.rest();
  for (const exposition of [await ofApi(), await ofWorker()]) {
    for (const secret of [organizationId, token, tokenId, "canary", "org_", "req_", "smk_"])
      expect(exposition.text).not.toContain(secret);
    const own = new Set([
      "route",
      "status",
      "outcome",
      "from",
      "kind",
      "reason",
      "why",
      "provider",
      "where",
      "lane",
      "of",
      "check",
      "step",
      "tool",
    ]);
    const library = new Set(["le", "type", "version", "major", "minor", "patch", "space", "quantile"]);
    expect([...exposition.labelNames()].filter((name) => !own.has(name) && !library.has(name))).toEqual([]);
  }
});

const nonZero = (series: Record<string, number>) =>
  Object.fromEntries(Object.entries(series).filter(([, value]) => value !== 0));
