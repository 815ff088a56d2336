import type { Command } from "commander";
import { readEngineConfig } from "../config.ts";
import type { Capabilities, ProviderHealth } from "../providers/health-check.ts";
import { formatTable } from "./format-table.ts";
import type { Terminal } from "./terminal.ts";

const titles = ["provider", "reachable", "credentials", "balance", "latency (ms)", "can"];

export function addProviderCommands(program: Command, terminal: Terminal): void {
  program
    .command("providers")
    .description("providers: the upstreams that the workers call")
    .command("check")
    .summary("check the providers of SERP_PROVIDERS and our accounts there; exit 1 if one is unhealthy")
    .description(
      "Check each provider of SERP_PROVIDERS: by the state of our account there, or, where searches cost nothing, by a search. Costs nothing.",
    )
    .option("--json", "print one line of JSON instead of a table")
    .addHelpText(
      "after",
      "\nNeeds the settings of the providers, but neither DATABASE_URL nor REDIS_URL. Exits with 1 if a provider is unhealthy.",
    )
    .showHelpAfterError("(add --help for the arguments)")
    .action((options: { json?: boolean }) => checkProviders(terminal, options));
}

async function checkProviders(terminal: Terminal, { json = false }: { json?: boolean }): Promise<void> {
  const config = readEngineConfig(terminal.environment);
  // Loaded on demand: the providers and their HTTP client would add to the start of every other command.
  const { checkProvidersHealth } = await import("../providers/health-check.ts");
  const providers = await checkProvidersHealth(config);
  const unhealthy = providers.filter(({ problem }) => problem !== null);
  const ok = unhealthy.length === 0;
  terminal.stdout(json ? `${JSON.stringify({ ok, providers })}\n` : formatTable(titles, providers.map(cellsOf)));
  for (const { provider, problem } of unhealthy) terminal.stderr(`${provider} ${problem}.\n`);
  if (!ok) terminal.exitCode = 1;
}

function cellsOf({ provider, reachable, credentials, balance, latencyMs, can }: ProviderHealth): string[] {
  const reached = reachable === null ? "-" : reachable ? "yes" : "no";
  const capabilities = can ? describeCapabilities(can) : "-";
  return [provider, reached, credentials ?? "-", balance ?? "-", String(latencyMs ?? "-"), capabilities];
}

function describeCapabilities({ mobile, cities, everyLanguage, depthInOneCall }: Capabilities): string {
  return [
    mobile ? "mobile" : "desktop only",
    cities ? "cities" : "countries only",
    everyLanguage ? "every language" : "not every language",
    depthInOneCall ? "all pages in one call" : "pages of 10",
  ].join(", ");
}
