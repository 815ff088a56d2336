import { type EngineConfig, MissingSettings, type ProviderName } from "../config.ts";
import { readQuery } from "../query/query.ts";
import { type ProviderHttp, openProviderHttp } from "./policies/http.ts";
import type { Account, Failure, FailureKind, Page, PageAnswer, PageRequest, Provider } from "./provider.ts";
import { openProvider } from "./registry.ts";

const answerMsMax = 10_000;
const query = readQuery({ keyword: "coffee" });

/** How one provider does. What could not be found out is null. */
export type ProviderHealth = {
  provider: ProviderName;
  /** Whether anything answered there. */
  reachable: boolean | null;
  /** `ok`, `refused`, `none needed`, or `missing: ` and the settings that it lacks. */
  credentials: string | null;
  /** In the provider's own unit: `12.34 USD`. */
  balance: string | null;
  latencyMs: number | null;
  can: Abilities | null;
  /** What is not well, as a sentence about the provider; null where all is. */
  problem: string | null;
};

export type Abilities = { mobile: boolean; cities: boolean; everyLanguage: boolean; depthInOneCall: boolean };

const unknown = { reachable: null, credentials: null, balance: null, latencyMs: null, can: null, problem: null };

const problems: Record<FailureKind, string> = {
  unavailable: "is out of reach, or has an error of its own",
  blocked: "is not let through by Google",
  rate_limited: "gets too many calls from our account",
  account_refused: "refuses us: wrong credentials, an empty account, or a setting there",
  query_refused: "refuses the query",
  request_refused: "does not understand the request",
  unreadable: "answers what cannot be read",
  timeout: "does not answer in time",
  busy: "has no place left",
  outrun: "is slower than another one",
  unneeded: "was not waited for",
  dropped: "was not waited for",
};

/**
 * Asks the account of each provider of SERP_PROVIDERS, side by side; or, where there is none because searches cost nothing,
 * a search. Each may take `msMax` milliseconds. What it returns holds no secret.
 */
export async function checkProvidersHealth(config: EngineConfig, msMax = answerMsMax): Promise<ProviderHealth[]> {
  const asker = openProviderHttp();
  try {
    const names = [...new Set(config.SERP_PROVIDERS)];
    return await Promise.all(names.map((name) => checkNamed(name, { config, asker, msMax })));
  } finally {
    await asker.close();
  }
}

async function checkNamed(
  provider: ProviderName,
  { config, asker, msMax }: { config: EngineConfig; asker: ProviderHttp; msMax: number },
): Promise<ProviderHealth> {
  try {
    return { provider, ...(await checkOpen(openProvider(provider, config), asker, msMax)) };
  } catch (error) {
    if (!(error instanceof MissingSettings)) throw error;
    const names = error.names.join(", ");
    return { provider, ...unknown, credentials: `missing: ${names}`, problem: `lacks ${names}` };
  }
}

async function checkOpen(
  provider: Provider,
  asker: ProviderHttp,
  msMax: number,
): Promise<Omit<ProviderHealth, "provider">> {
  const startedAt = performance.now();
  const { reachable, told } = await ask(provider, asker, msMax);
  const latencyMs = reachable ? Math.round(performance.now() - startedAt) : null;
  const credentials = provider.account === undefined ? "none needed" : null;
  const found = { ...unknown, reachable, credentials, latencyMs, can: abilitiesOf(provider) };
  if ("failure" in told) {
    const problem = problems[told.failure];
    return told.failure === "account_refused" ? { ...found, credentials: "refused", problem } : { ...found, problem };
  }
  if (!("balance" in told)) return found;
  const problem = told.isSpent ? "has nothing left on our account" : null;
  return { ...found, credentials: "ok", balance: told.balance, problem };
}

type Question = { request: PageRequest; read: (answer: PageAnswer) => Account | Page | Failure };

async function ask(provider: Provider, asker: ProviderHttp, msMax: number) {
  const free: Question = { request: provider.request(query, 1), read: provider.read };
  const { request, read } = provider.account ?? free;
  const answer = await asker.send(provider, request, { msMax, stop: new AbortController().signal });
  // What cannot be read has arrived all the same.
  if ("failure" in answer) return { reachable: answer.failure === "unreadable", told: answer };
  return { reachable: true, told: read(answer) };
}

function abilitiesOf({ can, request }: Provider): Abilities {
  // Who is asked for the second page as for the first has all in one answer.
  const [first, second] = [1, 2].map((pageNumber) => JSON.stringify(request(query, pageNumber)));
  return {
    mobile: can.mobile,
    cities: can.city,
    everyLanguage: can.language === undefined,
    depthInOneCall: first === second,
  };
}
