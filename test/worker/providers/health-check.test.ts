import { afterEach, beforeEach, expect, test } from "vitest";
import { type ProviderName, providerNames, readEngineConfig } from "../../../shared/config.ts";
import { type ProviderHealth, checkProvidersHealth } from "../../../worker/providers/health-check.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { httpProviders } from "../../harness/fixtures/provider-answers.ts";
import { contractCases, type ContractCase } from "./contract-cases.ts";
import { type ProviderStubs, type Reply, reply, startProviderStubs } from "./provider-stubs.ts";

const timeoutMs = 20_000;
const withAccount = httpProviders.filter((name) => contractCases[name].account !== undefined);

let stubs: ProviderStubs;
beforeEach(async () => {
  stubs = await startProviderStubs();
});
afterEach(() => stubs.close());

function checkAll(names: readonly ProviderName[], settings: Record<string, string> = {}, msMax = timeoutMs) {
  return checkProvidersHealth(
    readEngineConfig({ ...stubs.settings, SERP_PROVIDERS: names.join(","), ...settings }),
    msMax,
  );
}

/** Checks one provider that sends this reply. */
async function checkOne(name: ProviderName, replies: Reply, msMax?: number): Promise<ProviderHealth | undefined> {
  stubs.replies.set(name, replies);
  return (await checkAll([name], {}, msMax))[0];
}

/** The state of credentials that no provider has accepted or refused. */
const credentialsUnknown = (name: ProviderName) => (name === "searxng" ? "none needed" : null);

test("healthy providers are checked by the state of the account, or by a search where searches cost nothing", async () => {
  const checks = await checkAll(providerNames);
  const healthy = { reachable: true, credentials: "ok", problem: null, latencyMs: expect.any(Number) };
  const free = { ...healthy, credentials: "none needed", balance: null };
  const most = { mobile: true, cities: true, everyLanguage: false, depthInOneCall: false };
  expect(checks).toEqual([
    { ...free, provider: "sandbox", can: { ...most, everyLanguage: true } },
    { ...healthy, provider: "serpapi", balance: "870 searches left", can: most },
    { ...healthy, provider: "serper", balance: "2,492 credits", can: { ...most, mobile: false } },
    { ...free, provider: "searxng", can: { ...most, mobile: false, cities: false } },
    { ...healthy, provider: "dataforseo", balance: "12.34 USD", can: { ...most, depthInOneCall: true } },
    { ...healthy, provider: "searchapi", balance: "9,870 credits", can: most },
  ]);
  expect(stubs.requests.toSorted()).toEqual([
    "dataforseo GET /v3/appendix/user_data",
    "searchapi GET /api/v1/me",
    "searxng POST /search",
    "serpapi GET /account.json",
    "serper GET /account",
  ]);
});

test("all providers are checked concurrently", async () => {
  const held: (() => void)[] = [];
  for (const name of httpProviders) {
    const { account, page }: ContractCase = contractCases[name];
    stubs.replies.set(name, (response) => held.push(() => reply(200, account?.answer ?? page)(response)));
  }
  const checks = checkAll(httpProviders);
  await eventually(async () => held.length === httpProviders.length);
  for (const answer of held) answer();
  expect((await checks).map(({ provider, problem }) => [provider, problem])).toEqual(
    httpProviders.map((name) => [name, null]),
  );
});

test.each(withAccount)("%s is reachable and refuses wrong credentials", async (name) => {
  const wrong = {
    SERPAPI_API_KEY: "another-key-0123456789",
    SERPER_API_KEY: "another",
    DATAFORSEO_PASSWORD: "another",
    SEARCHAPI_API_KEY: "another",
  };
  const [check] = await checkAll([name], wrong);
  expect(check).toMatchObject({ reachable: true, credentials: "refused", balance: null });
  expect(check?.problem).toMatch(/^rejects our account: wrong credentials/);
});

test.each(withAccount)("an account at %s without balance is a problem, and its balance is shown", async (name) => {
  const { account }: ContractCase = contractCases[name];
  const check = await checkOne(name, reply(200, account?.spent));
  expect(check).toMatchObject({ reachable: true, credentials: "ok", problem: "has no balance left on our account" });
  expect(check?.balance).toMatch(/^-?0/);
});

const problems = {
  down: "is unreachable or returned a server error",
  late: "did not answer in time",
  unreadable: "returned an unreadable answer",
};

test.each(httpProviders)("%s is unreachable if nothing listens at its address", async (name) => {
  const [check] = await checkAll([name], { [`${name.toUpperCase()}_BASE_URL`]: "http://127.0.0.1:1" });
  const unknown = { credentials: credentialsUnknown(name), balance: null, latencyMs: null };
  expect(check).toMatchObject({ ...unknown, reachable: false, problem: problems.down });
});

const faults: [what: string, problem: keyof typeof problems, reachable: boolean, happens: Reply][] = [
  ["no answer", "late", false, () => {}],
  ["an answer without end", "late", false, (response) => response.writeHead(200).write("{")],
  ["a server error", "down", true, reply(503, "Oops")],
  ["a broken connection", "down", false, (response) => response.destroy()],
  ["garbage", "unreadable", true, reply(200, "<!doctype html><title>Sign in to the network</title>")],
  ["an answer of another service", "unreadable", true, reply(200, { hello: "world" })],
  ["a redirect", "unreadable", true, (response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end()],
  ["an answer too large", "unreadable", true, reply(200, { balance: 1, pad: "x".repeat(5 * 1024 * 1024) })],
];

test.each(httpProviders.flatMap((name) => faults.map((fault) => [name, ...fault] as const)))(
  "of %s, %s is a problem: %s, reachable: %s",
  async (name, _, problem, reachable, happens) => {
    const check = await checkOne(name, happens, problem === "late" ? 50 : undefined);
    const unknown = { credentials: credentialsUnknown(name), balance: null };
    expect(check).toMatchObject({ ...unknown, reachable, problem: problems[problem] });
  },
);

test("a provider without its settings is not called, its missing settings are listed, and the others are checked", async () => {
  const { settings } = stubs;
  const lacking = Object.fromEntries(Object.entries(settings).filter(([name]) => /SERPER/.test(name)));
  const config = readEngineConfig({
    ...lacking,
    SERP_PROVIDERS: "dataforseo,serpapi,serper,searxng",
    DATAFORSEO_LOGIN: "a",
  });
  const checks = await checkProvidersHealth(config, timeoutMs);
  const nothing = { reachable: null, balance: null, latencyMs: null, can: null };
  const missing = (provider: ProviderName, names: string) => ({
    provider,
    ...nothing,
    credentials: `missing: ${names}`,
    problem: `lacks ${names}`,
  });
  expect(checks).toEqual([
    missing("dataforseo", "DATAFORSEO_PASSWORD"),
    missing("serpapi", "SERPAPI_API_KEY"),
    expect.objectContaining({ provider: "serper", problem: null }),
    missing("searxng", "SEARXNG_BASE_URL"),
  ]);
  expect(stubs.requests).toEqual(["serper GET /account"]);
});
