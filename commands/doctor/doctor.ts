import type { Command } from "commander";
import { ConfigError, readConfig } from "../../shared/config.ts";
import { exitCodes } from "../exit-codes.ts";
import type { CommandContext, RunCommand } from "../run-command.ts";
import type { ShowResult } from "../show-result.ts";
import type { Terminal } from "../terminal.ts";
import { examinePlans } from "./examine-plans.ts";
import { examinePostgres } from "./examine-postgres.ts";
import { examineRedis } from "./examine-redis.ts";
import { examineWorkers } from "./examine-workers.ts";
import { failure, type Finding, formatFindings, ok, warning } from "./finding.ts";

// Deadlines are times of Redis' clock; others only show in logs and in the ledger.
const clockDifferenceMaxMs = 1_000;

interface Report {
  ok: boolean;
  findings: Finding[];
}

export function addDoctorCommand(
  program: Command,
  { run, show, terminal }: { run: RunCommand; show: ShowResult; terminal: Terminal },
): void {
  program
    .command("doctor")
    .summary(
      "examine settings, Postgres, Redis, clocks, workers, providers and plans; exit 1 if searches cannot be served",
    )
    .description(
      "Examine everything Serpmill needs, and say how to fix each problem. Changes nothing, and costs nothing at the providers.",
    )
    .addHelpText("after", "\nExits with 0 if searches can be served, warnings included, and with 1 otherwise.")
    .action(async () => {
      const toText = ({ findings }: Report) => formatFindings(findings);
      const exitCode = ({ ok: isServing }: Report) => (isServing ? 0 : exitCodes.refused);
      const wrong = wrongSettings(terminal);
      if (wrong.length === 0) return run(examine, { toText, exitCode });
      show(toReport(wrong), toText);
      terminal.exitCode = exitCodes.refused;
    });
}

function wrongSettings({ environment }: Terminal): Finding[] {
  try {
    readConfig(environment);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.lines.map((line) => failure("settings", line, "See docs/operating/configuration.md."));
  }
}

async function examine({ config, database, redis }: CommandContext): Promise<Report> {
  // Loaded on demand, as in the command `providers check`.
  const { examineProviders } = await import("./examine-providers.ts");
  const [postgres, inRedis, providers] = await Promise.all([
    examinePostgres(database),
    examineRedis(redis, config.REDIS_URL),
    examineProviders(config),
  ]);
  const { clock } = inRedis;
  const workers = clock ? await examineWorkers(redis, clock) : [];
  const isReadable = postgres.findings.every(({ state }) => state !== "error");
  const plans = isReadable ? await examinePlans(database, config.SERP_PROVIDERS) : [];
  const aheadMs = { Postgres: postgres.aheadMs, Redis: clock && clock.nowMs() - Date.now() };
  const settings = ok("settings", "all valid");
  return toReport([
    settings,
    ...postgres.findings,
    ...inRedis.findings,
    examineClocks(aheadMs),
    ...workers,
    ...providers,
    ...plans,
  ]);
}

/** @param aheadMs by how much each clock is ahead of this machine's. */
function examineClocks(aheadMs: Record<string, number | undefined>): Finding {
  const known = [0, ...Object.values(aheadMs).filter((ahead) => ahead !== undefined)];
  const differenceMs = Math.round(Math.max(...known) - Math.min(...known));
  const found = `this machine, ${Object.keys(aheadMs).join(" and ")} differ by ${differenceMs} ms at most`;
  if (differenceMs <= clockDifferenceMaxMs) return ok("clocks", found);
  return warning("clocks", found, "Synchronize the clocks of all machines (NTP).");
}

const toReport = (findings: Finding[]): Report => ({ ok: findings.every(({ state }) => state !== "error"), findings });
