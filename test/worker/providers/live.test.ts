import { describe, expect, test } from "vitest";
import { MissingSettings, type ProviderName, providerNames, readConfig } from "../../../shared/config.ts";
import { element } from "../../harness/assertions/element.ts";
import { openProviderHttp } from "../../../worker/providers/policies/http.ts";
import { checkProvidersHealth } from "../../../worker/providers/health-check.ts";
import { openProvider } from "../../../worker/providers/registry.ts";
import { query } from "../../harness/fixtures/queries.ts";

/**
 * Calls the real providers: for each one whose settings are in the environment, its account and one search, which is charged.
 * SERP_PROVIDERS is ignored. The sandbox needs no settings and shows that this file can pass.
 */

const answerTimeoutMs = 25_000;
// DataForSEO's sandbox is free and returns made-up results in the real shape.
const config = readConfig(undefined, {
  DATABASE_URL: "postgres://a/b",
  REDIS_URL: "redis://a",
  SERP_PROVIDERS: "sandbox",
  DATAFORSEO_BASE_URL: "https://sandbox.dataforseo.com",
});

const cases = providerNames.map((name) => {
  const missing = missingSettings(name);
  return { name, isMissing: missing !== "", state: missing === "" ? "called" : `skipped without ${missing}` };
});

/** The provider's settings that the environment lacks. */
function missingSettings(name: ProviderName): string {
  try {
    openProvider(name, config);
    return "";
  } catch (error) {
    if (error instanceof MissingSettings) return error.names.join(" and ");
    throw error;
  }
}

describe.each(cases)("$name, $state", ({ name, isMissing }) => {
  test.skipIf(isMissing)("returns its account, or needs none", async () => {
    const provider = openProvider(name, config);
    const [check] = await checkProvidersHealth({ ...config, SERP_PROVIDERS: [name] });
    expect(check).toMatchObject({ reachable: true, credentials: provider.account ? "ok" : "none needed" });
    expect(check?.balance ?? "none").toMatch(provider.account ? /\d/ : "none");
  });

  test.skipIf(isMissing)("returns the results of a search in the shape of the contract", async () => {
    const provider = openProvider(name, config);
    const http = openProviderHttp();
    const stop = new AbortController();
    // Without the engine, which would pay for a retry after a failure.
    const request = provider.request(query({ keyword: "best coffee beans", depth: 10 }), 1);
    const answer = await http.send(provider, request, { timeoutMs: answerTimeoutMs, signal: stop.signal });
    await http.close();
    const page = "failure" in answer ? answer : provider.read(answer);
    if ("failure" in page) throw new Error(`${name} gave no page: ${page.failure}.`);
    expect(page.elements.map((found) => element.parse(found))).toEqual(page.elements);
    const organic = page.elements.filter(({ type }) => type === "organic");
    expect(organic.length).toBeGreaterThan(0);
    expect(organic.every(({ title, url, domain }) => title !== "" && URL.canParse(url) && domain !== "")).toBe(true);
  });
});
