import type { EngineConfig } from "../../shared/config.ts";
import { checkProvidersHealth, type ProviderHealth } from "../../worker/providers/health-check.ts";
import { failure, type Finding, ok, warning } from "./finding.ts";

/** The health of each provider of SERP_PROVIDERS. One that works is enough to serve searches. */
export async function examineProviders(config: EngineConfig): Promise<Finding[]> {
  const all = await checkProvidersHealth(config);
  const isServed = all.some(({ problem }) => problem === null);
  return all.map((health) => examineProvider(health, isServed));
}

function examineProvider({ provider, problem, balance }: ProviderHealth, isServed: boolean): Finding {
  if (problem !== null) {
    const advice = `See npm run admin -- providers check, and docs/operating/providers.md.`;
    const found = `${provider} ${problem}`;
    return isServed ? warning("providers", found, advice) : failure("providers", found, advice);
  }
  if (provider === "sandbox")
    return warning("providers", "sandbox makes answers up", "Set SERP_PROVIDERS before you charge for answers.");
  return ok("providers", balance === null ? provider : `${provider}, ${balance} left`);
}
