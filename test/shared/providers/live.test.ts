import { describe, expect, test } from "vitest";
import { MissingSettings, type ProviderName, providerNames, readEngineConfig } from "../../../shared/config.ts";
import { result } from "../../../shared/results.ts";
import { openProviderHttp } from "../../../shared/providers/policies/http.ts";
import { checkProvidersHealth } from "../../../shared/providers/health-check.ts";
import { openProvider } from "../../../shared/providers/registry.ts";
import { query } from "../../harness/fixtures/queries.ts";

/**
 * The providers themselves, and no recordings: each whose settings are in the environment is asked for its account and for
 * one search, which is paid for. SERP_PROVIDERS does not count. The sandbox, always there, shows that this file can pass.
 */

const answerMsMax = 25_000;
const element = result.omit({ rank: true });
// Free, with made-up results in the real shape.
const config = readEngineConfig(undefined, { DATAFORSEO_BASE_URL: "https://sandbox.dataforseo.com" });

const cases = providerNames.map((name) => {
  const lacking = lackingFor(name);
  return { name, isLacking: lacking !== "", told: lacking === "" ? "asked today" : `skipped, lacking ${lacking}` };
});

/** The settings that the environment does not have. */
function lackingFor(name: ProviderName): string {
  try {
    openProvider(name, config);
    return "";
  } catch (error) {
    if (error instanceof MissingSettings) return error.names.join(" and ");
    throw error;
  }
}

describe.each(cases)("$name, $told", ({ name, isLacking }) => {
  test.skipIf(isLacking)("tells of its account, or needs none", async () => {
    const provider = openProvider(name, config);
    const [check] = await checkProvidersHealth({ ...config, SERP_PROVIDERS: [name] });
    expect(check).toMatchObject({ reachable: true, credentials: provider.account ? "ok" : "none needed" });
    expect(check?.balance ?? "none").toMatch(provider.account ? /\d/ : "none");
  });

  test.skipIf(isLacking)("answers a search with results in the shape of the contract", async () => {
    const provider = openProvider(name, config);
    const asker = openProviderHttp();
    const stop = new AbortController();
    // Asked past the engine, which would pay for a second call where the first one fails.
    const request = provider.request(query({ keyword: "best coffee beans", depth: 10 }), 1);
    const answer = await asker.send(provider, request, { timeoutMs: answerMsMax, signal: stop.signal });
    await asker.close();
    const page = "failure" in answer ? answer : provider.read(answer);
    if ("failure" in page) throw new Error(`${name} gave no page: ${page.failure}.`);
    expect(page.elements.map((found) => element.parse(found))).toEqual(page.elements);
    const organic = page.elements.filter(({ type }) => type === "organic");
    expect(organic.length).toBeGreaterThan(0);
    expect(organic.every(({ title, url, domain }) => title !== "" && URL.canParse(url) && domain !== "")).toBe(true);
  });
});
