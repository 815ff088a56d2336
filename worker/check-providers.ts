import { Command } from "commander";
import { formatTable } from "../shared/admin/format-table.ts";
import { ConfigError, readEngineConfig } from "../shared/config.ts";
import { type Abilities, type ProviderHealth, checkProvidersHealth } from "../shared/providers/health-check.ts";

const titles = ["provider", "reachable", "credentials", "balance", "latency (ms)", "can"];

function jsonOf(checks: readonly ProviderHealth[]): string {
  return `${JSON.stringify({ ok: checks.every(({ problem }) => problem === null), providers: checks })}\n`;
}

function cellsOf({ provider, reachable, credentials, balance, latencyMs, can }: ProviderHealth): string[] {
  const reached = reachable === null ? "-" : reachable ? "yes" : "no";
  return [provider, reached, credentials ?? "-", balance ?? "-", String(latencyMs ?? "-"), can ? wordsOf(can) : "-"];
}

function wordsOf({ mobile, cities, everyLanguage, depthInOneCall }: Abilities): string {
  return [
    mobile ? "mobile" : "desktop only",
    cities ? "cities" : "countries only",
    everyLanguage ? "every language" : "not every language",
    depthInOneCall ? "all pages in one call" : "pages of 10",
  ].join(", ");
}

/** `npm run admin -- providers check`: how the providers do, and how our accounts there are. */
if (import.meta.main) {
  const command = new Command("admin providers check")
    .description(
      "Ask each provider of SERP_PROVIDERS how our account there is, or, where searches cost nothing, for a search. Costs nothing.",
    )
    .option("--json", "print one line of JSON in place of a table")
    .addHelpText(
      "after",
      "\nNeeds the settings of the providers, and neither DATABASE_URL nor REDIS_URL. Exits with 1 where one is not well.",
    )
    .showHelpAfterError("(add --help for the arguments)")
    .parse();
  try {
    const checks = await checkProvidersHealth(readEngineConfig());
    const unwell = checks.filter(({ problem }) => problem !== null);
    process.stdout.write(
      command.opts<{ json?: boolean }>().json ? jsonOf(checks) : formatTable(titles, checks.map(cellsOf)),
    );
    for (const { provider, problem } of unwell) process.stderr.write(`${provider} ${problem}.\n`);
    process.exitCode = unwell.length === 0 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
