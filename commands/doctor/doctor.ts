import type { Command } from "commander";
import type { Redis } from "ioredis";
import { ConfigError, type EngineConfig, type ProviderName, readConfig } from "../../shared/config.ts";
import type { CommandContext, RunCommand } from "../run-command.ts";
import { exitCodes, type ShowResult, type Terminal } from "../terminal.ts";
import { examinePostgres } from "./examine-postgres.ts";
import { examineRedis } from "./examine-redis.ts";
import { failure, type Finding, formatFindings, ok, warning } from "./finding.ts";
import { listPlans } from "../../shared/credits/plans.ts";
import type { Database } from "../../shared/database/pool.ts";
import { describeLoss, marginsOf } from "../plan-margins.ts";
import { readOldestWaitMs } from "../../shared/queue/turns.ts";
import { readWorkerCapacity } from "../../shared/queue/worker-heartbeats.ts";
import type { Clock } from "../../shared/redis/clock.ts";
import type { ProviderHealth } from "../../worker/providers/health-check.ts";

// Deadlines are times of Redis' clock; others only show in logs and in the ledger.
const clockDifferenceMaxMs = 1_000;
const longWaitMs = 5_000;

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

const toReport = (findings: Finding[]): Report => ({ ok: findings.every(({ state }) => state !== "error"), findings });

/** @param aheadMs by how much each clock is ahead of this machine's. */
function examineClocks(aheadMs: Record<string, number | undefined>): Finding {
  const known = [0, ...Object.values(aheadMs).filter((ahead) => ahead !== undefined)];
  const differenceMs = Math.round(Math.max(...known) - Math.min(...known));
  const found = `this machine, ${Object.keys(aheadMs).join(" and ")} differ by ${differenceMs} ms at most`;
  if (differenceMs <= clockDifferenceMaxMs) return ok("clocks", found);
  return warning("clocks", found, "Synchronize the clocks of all machines (NTP).");
}

/** Whether workers take searches, by their heartbeats and the queue. @throws if Redis does not answer. */
async function examineWorkers(redis: Redis, clock: Clock): Promise<Finding[]> {
  const { workers, slots } = await readWorkerCapacity(redis, clock.nowMs());
  if (workers === 0)
    return [
      failure("workers", "no heartbeat", "Start a worker: npm run worker. If one runs, check its log and /readyz."),
    ];
  const waitMs = await readOldestWaitMs(redis, clock.nowMs());
  const found = `${workers} with ${slots} slots; the oldest search has waited ${Math.round(waitMs)} ms`;
  if (waitMs < longWaitMs) return [ok("workers", found)];
  return [warning("workers", found, "Start more workers, or check whether the providers are slow.")];
}

/** The health of each provider of SERP_PROVIDERS. One that works is enough to serve searches. */
async function examineProviders(config: EngineConfig): Promise<Finding[]> {
  // Loaded on demand, as in the command `providers check`.
  const { checkProvidersHealth } = await import("../../worker/providers/health-check.ts");
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

/** Plans that sell searches below what the configured providers take for them. @throws if Postgres does not answer. */
async function examinePlans(database: Database, providers: readonly ProviderName[]): Promise<Finding[]> {
  const advice =
    "Give it a higher price, --price-per-page or --max-depth: docs/operating/providers.md#prices-and-margin-by-depth";
  const margins = (await listPlans(database)).map((plan) => ({ plan, ...marginsOf(plan, providers) }));
  const losses = margins.flatMap(({ plan, belowCost }) =>
    belowCost.map((loss) => warning("plans", describeLoss(plan.code, loss), advice)),
  );
  const unknown = [...new Set(margins.flatMap(({ unknownCost }) => unknownCost))];
  const known = losses.length > 0 ? losses : [ok("plans", "no plan sells a search below a known cost")];
  return [...known, ...unknown.map((provider) => ok("plans", `the cost of a search at ${provider} is unknown`))];
}
