import type { Command } from "commander";
import { readEngineConfig } from "../shared/config.ts";
import type { Capabilities, ProviderHealth } from "../worker/providers/health-check.ts";
import { exitCodes, type ShowResult, type Terminal } from "./run-command.ts";

export function addProviderCommands(program: Command, show: ShowResult, terminal: Terminal): void {
  program
    .command("providers")
    .description("providers: the upstreams that the workers call")
    .command("check")
    .summary("check the providers of SERP_PROVIDERS and our accounts there; exit 1 if one is unhealthy")
    .description(
      "Check each provider of SERP_PROVIDERS: query our account, or run a search if searches are free. Costs nothing.",
    )
    .addHelpText(
      "after",
      "\nNeeds the settings of the providers, but neither DATABASE_URL nor REDIS_URL. Exits with 1 if a provider is unhealthy.",
    )
    .action(() => checkProviders(terminal, show));
}

async function checkProviders(terminal: Terminal, show: ShowResult): Promise<void> {
  const config = readEngineConfig(terminal.environment);
  // Loaded on demand: the providers and their HTTP client would add to the start of every other command.
  const { checkProvidersHealth } = await import("../worker/providers/health-check.ts");
  const providers = await checkProvidersHealth(config);
  const unhealthy = providers.filter(({ problem }) => problem !== null);
  const ok = unhealthy.length === 0;
  show({ ok, providers }, (result, format) => format({ providers: result.providers.map(shownOf) }));
  for (const { provider, problem } of unhealthy) terminal.stderr(`${provider} ${problem}.\n`);
  if (!ok) terminal.exitCode = exitCodes.refused;
}

/** A row of the table. The problem is a sentence on stderr. */
const shownOf = ({ problem: _problem, can, ...health }: ProviderHealth) => ({
  ...health,
  can: can && describeCapabilities(can),
});

function describeCapabilities({ mobile, cities, everyLanguage, depthInOneCall }: Capabilities): string {
  return [
    mobile ? "mobile" : "desktop only",
    cities ? "cities" : "countries only",
    everyLanguage ? "every language" : "not every language",
    depthInOneCall ? "all pages in one call" : "pages of 10",
  ].join(", ");
}
