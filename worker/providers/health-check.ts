import { type EngineConfig, MissingSettings, type ProviderName } from "../../shared/config.ts";
import { readQuery } from "../../shared/query/query.ts";
import { type ProviderHttp, openProviderHttp } from "./policies/http.ts";
import type { Account, Failure, FailureKind, Page, PageAnswer, PageRequest, Provider } from "./provider.ts";
import { openProvider } from "./registry.ts";

const defaultTimeoutMs = 10_000;
const probeQuery = readQuery({ keyword: "coffee" });

/** The health of one provider. What the check could not find out is null. */
export type ProviderHealth = {
  provider: ProviderName;
  /** Whether anything answered at its address. */
  reachable: boolean | null;
  /** `ok`, `refused`, `none needed`, or `missing: ` and the settings that are not set. */
  credentials: string | null;
  /** In the provider's own unit: `12.34 USD`. */
  balance: string | null;
  latencyMs: number | null;
  can: Capabilities | null;
  /** What is wrong, as the end of a sentence that begins with the provider's name; null if it is healthy. */
  problem: string | null;
};

export type Capabilities = { mobile: boolean; cities: boolean; everyLanguage: boolean; depthInOneCall: boolean };

const unknown = { reachable: null, credentials: null, balance: null, latencyMs: null, can: null, problem: null };

/** Searches end in further ways, health checks do not: they wait for no slot and cancel no call. */
const problems: Partial<Record<FailureKind, string>> = {
  unavailable: "is unreachable or returned a server error",
  blocked: "is blocked by Google",
  rate_limited: "rejects the call because our account has too many calls running",
  account_refused: "rejects our account: wrong credentials, no credits left, or a setting of the account",
  query_refused: "does not allow the query on our account",
  request_refused: "rejects the request as invalid",
  unreadable: "returned an unreadable answer",
  timeout: "did not answer in time",
};

/**
 * Checks all providers of SERP_PROVIDERS concurrently: by a free call that returns the state of our account, or, where
 * searches cost nothing, by a search. The result holds no secret.
 * @param timeoutMs for each provider.
 */
export async function checkProvidersHealth(
  config: EngineConfig,
  timeoutMs = defaultTimeoutMs,
): Promise<ProviderHealth[]> {
  const http = openProviderHttp();
  try {
    return await Promise.all(config.SERP_PROVIDERS.map((name) => checkConfigured(name, { config, http, timeoutMs })));
  } finally {
    await http.close();
  }
}

async function checkConfigured(
  provider: ProviderName,
  { config, http, timeoutMs }: { config: EngineConfig; http: ProviderHttp; timeoutMs: number },
): Promise<ProviderHealth> {
  try {
    return { provider, ...(await checkOpened(openProvider(provider, config), http, timeoutMs)) };
  } catch (error) {
    if (!(error instanceof MissingSettings)) throw error;
    const names = error.names.join(", ");
    return { provider, ...unknown, credentials: `missing: ${names}`, problem: `lacks ${names}` };
  }
}

async function checkOpened(
  provider: Provider,
  http: ProviderHttp,
  timeoutMs: number,
): Promise<Omit<ProviderHealth, "provider">> {
  const startedAtMs = performance.now();
  const { reachable, outcome } = await probe(provider, http, timeoutMs);
  const latencyMs = reachable ? Math.round(performance.now() - startedAtMs) : null;
  const credentials = provider.account === undefined ? "none needed" : null;
  const health = { ...unknown, reachable, credentials, latencyMs, can: capabilitiesOf(provider) };
  if ("failure" in outcome) {
    const problem = problems[outcome.failure] ?? "did not complete the check";
    const isRefused = outcome.failure === "account_refused";
    return isRefused ? { ...health, credentials: "refused", problem } : { ...health, problem };
  }
  if (!("balance" in outcome)) return health;
  const problem = outcome.isSpent ? "has no balance left on our account" : null;
  return { ...health, credentials: "ok", balance: outcome.balance, problem };
}

type Probe = { request: PageRequest; read: (answer: PageAnswer) => Account | Page | Failure };

async function probe(provider: Provider, http: ProviderHttp, timeoutMs: number) {
  const search: Probe = { request: provider.request(probeQuery, 1), read: provider.read };
  const { request, read } = provider.account ?? search;
  const answer = await http.send(provider, request, { timeoutMs });
  // An unreadable answer did arrive.
  if ("failure" in answer) return { reachable: answer.failure === "unreadable", outcome: answer };
  return { reachable: true, outcome: read(answer) };
}

function capabilitiesOf({ can, request }: Provider): Capabilities {
  // If the requests for both pages are equal, the first answer holds all pages.
  const [first, second] = [1, 2].map((pageNumber) => JSON.stringify(request(probeQuery, pageNumber)));
  return {
    mobile: can.mobile,
    cities: can.city,
    everyLanguage: can.language === undefined,
    depthInOneCall: first === second,
  };
}
