import type { Command } from "commander";
import { type Redis, ReplyError } from "ioredis";
import { z } from "zod";
import { rowOf, valueOf } from "../shared/database/row.ts";
import { ConfigError, type ProviderName, readConfig } from "../shared/config.ts";
import { countOpenGaps, listOpenGaps } from "../shared/credits/ledger-gaps.ts";
import { keysOf } from "../shared/credits/redis-keys.ts";
import { listPlans } from "../shared/credits/plans.ts";
import { readOldestSnapshot } from "../shared/database/oldest-snapshot.ts";
import type { Database } from "../shared/database/pool.ts";
import { canBecomeMore } from "../shared/database/process-login.ts";
import { readRedisAddress } from "../shared/config/redis-address.ts";
import { sqlStateOf } from "../shared/database/transient-errors.ts";
import { migrationNumbers } from "../shared/database/require-schema.ts";
import { readOldestWaitMs } from "../shared/queue/backlog.ts";
import { readWorkerCapacity } from "../shared/queue/worker-heartbeats.ts";
import { Clock } from "../shared/redis/clock.ts";
import { whenReady } from "../shared/redis/connect.ts";
import type { ProviderHealth } from "../worker/providers/health-check.ts";
import { failure, type Finding, formatFindings, ok, warning } from "./findings.ts";
import { inAskedUnit } from "./money.ts";
import { describeLoss, marginsOf } from "./plans.ts";
import {
  type CommandContext,
  connectTimeoutMs,
  exitCodes,
  type RunCommand,
  type ShowResult,
  type Terminal,
} from "./run-command.ts";

// Deadlines are times of Redis' clock. The other clocks only show in logs and in the ledger.
const clockDifferenceMaxMs = 1_000;
const longWaitMs = 5_000;
const gapsShownMax = 20;
const olderThanTransactionsMax = 10_000;
const oldestVersions = { postgres: 15, redis: 7 };
/** The share of maxmemory from which Redis counts as almost full. */
const almostFull = 0.8;

interface Report {
  ok: boolean;
  findings: Finding[];
}

const users = "docs/operating/datastores.md#users";
const migrationsPage = "docs/operating/upgrading.md#migrations";
const dump = "docs/operating/backup.md#dump";

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
      const toText = ({ findings }: Report) => inAskedUnit(program, formatFindings(findings));
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
    return error.lines.map((line) => failure("settings", line, "Correct this setting."));
  }
}

async function examine({ config, database, redis }: CommandContext): Promise<Report> {
  // Loaded on demand, as in the command `providers check`, and before the waits: on a slow machine it takes as long as they may.
  const { checkProvidersHealth } = await import("../worker/providers/health-check.ts");
  const [postgres, inRedis, providers] = await Promise.all([
    examinePostgres(database),
    examineRedis(redis, config.REDIS_URL),
    checkProvidersHealth(config),
  ]);
  const { clock } = inRedis;
  const workers = clock ? await examineWorkers(redis, clock) : [];
  const isReadable = postgres.findings.every(({ state }) => state !== "error");
  const plans = isReadable ? await examinePlans(database, config.SERP_PROVIDERS) : [];
  const ledger = isReadable ? await examineGaps(database) : [];
  const aheadMs = { Postgres: postgres.aheadMs, Redis: clock && clock.nowMs() - Date.now() };
  return toReport([
    ok("settings", "all valid"),
    ...postgres.findings,
    ...ledger,
    ...inRedis.findings,
    ...examineClocks(aheadMs),
    ...workers,
    ...examineProviders(providers),
    ...plans,
  ]);
}

const toReport = (findings: Finding[]): Report => ({ ok: findings.every(({ state }) => state !== "error"), findings });

const undefinedTable = "42P01";

const stateRow = rowOf({
  version: z.coerce.number(),
  atMs: z.number(),
  isReplica: z.boolean(),
  isReadOnly: z.boolean(),
});

/** @returns findings about Postgres, and by how much its clock is ahead of this machine's, if it answered. */
async function examinePostgres(database: Database): Promise<{ findings: Finding[]; aheadMs?: number }> {
  try {
    await database.query("select 1"); // So that connecting does not count as a difference of the clocks.
    const askedAtMs = Date.now();
    const { rows } = await database.query(
      `select current_setting('server_version_num') as version, pg_is_in_recovery() as is_replica,
         current_setting('transaction_read_only')::boolean as is_read_only,
         extract(epoch from clock_timestamp())::float8 * 1000 as at_ms`,
    );
    const state = stateRow.parse(rows[0]);
    const aheadMs = state.atMs - (askedAtMs + Date.now()) / 2;
    const findings = [
      ...examinePostgresVersion(state),
      await examineMigrations(database),
      await examineRole(database),
      await examineLogin(database),
      await examineOldestSnapshot(database),
    ];
    return { findings, aheadMs };
  } catch (error) {
    return { findings: [describeRefusal(error)] };
  }
}

function examinePostgresVersion({ version, ...state }: z.infer<typeof stateRow>): Finding[] {
  const major = Math.floor(version / 10_000);
  const name = `Postgres ${major}.${version % 10_000}`;
  if (state.isReplica)
    return [failure("postgres", `${name}, a read-only replica`, "Point DATABASE_URL to the primary.")];
  if (state.isReadOnly) {
    const advice = "Find out who set default_transaction_read_only. Managed services do so when the disk is full.";
    return [failure("postgres", `${name}, which refuses writes`, advice, "docs/operating/runbook.md#diskfull")];
  }
  if (major >= oldestVersions.postgres) return [ok("postgres", name)];
  return [failure("postgres", name, `Use Postgres ${oldestVersions.postgres} or newer.`)];
}

async function examineMigrations(database: Database): Promise<Finding> {
  const newest = Math.max(...migrationNumbers);
  const applied = await readNewestMigration(database);
  if (applied === newest) return ok("postgres", `migrations up to date (${newest})`);
  if (applied > newest) {
    const advice = "Upgrade the processes, or see the changelog about rolling back.";
    return warning("postgres", `migration ${applied} is of a newer version`, advice, migrationsPage);
  }
  const pending = migrationNumbers.filter((number) => number > applied).length;
  return failure("postgres", `pending migrations: ${pending}`, "Run npm run migrate.", migrationsPage);
}

async function readNewestMigration(database: Database): Promise<number> {
  try {
    const { rows } = await database.query("select coalesce(max(version), 0)::int as newest from migrations");
    return valueOf(z.number(), rows[0]);
  } catch (error) {
    if (sqlStateOf(error) === undefinedTable) return 0;
    throw error;
  }
}

async function examineRole(database: Database): Promise<Finding> {
  const { rows } = await database.query(
    `select count(*)::int as refused from pg_proc
     where pronamespace = 'public'::regnamespace and not has_function_privilege(oid, 'execute')
       and proname in ('decide_searches', 'charge_alone', 'limit_organization', 'limit_token', 'reverse_charges', 'change_credit', 'topup')`,
  );
  if (valueOf(z.int(), rows[0]) === 0) return ok("postgres", "the role serpmill has its privileges");
  return failure("postgres", "the role serpmill lacks privileges", "Run npm run migrate, which repairs them.", users);
}

async function examineLogin(database: Database): Promise<Finding> {
  const client = await database.connect();
  try {
    if (!(await canBecomeMore(client))) return ok("postgres", "the login can do no more than the processes need");
  } finally {
    client.release();
  }
  const advice = "Give the processes a login of their own.";
  return warning("postgres", "the login can do more than the processes need", advice, users);
}

/** Whether a transaction, a dump above all, keeps Postgres from removing dead rows. */
async function examineOldestSnapshot(database: Database): Promise<Finding> {
  const oldest = await readOldestSnapshot(database);
  if (!oldest || oldest.transactions <= olderThanTransactionsMax)
    return ok("postgres", "no old transaction keeps dead rows");
  const { pid, applicationName, transactions } = oldest;
  const found = `the transaction of process ${pid} (${applicationName || "no name"}) keeps the dead rows of ${transactions} newer ones`;
  return warning("postgres", found, "Wait for its end, or terminate it. Settlements slow down until then.", dump);
}

function describeRefusal(error: unknown): Finding {
  const message = error instanceof Error ? error.message : String(error);
  if (/role "serpmill" does not exist|permission denied/.test(message)) {
    const advice = "Run npm run migrate, which creates or repairs the role and its privileges.";
    return failure("postgres", message, advice, users);
  }
  const advice = "Check DATABASE_URL, and that the server runs and is reachable.";
  return failure("postgres", message || "unreachable", advice);
}

/** @returns findings about Redis, and its clock if it answered. */
async function examineRedis(redis: Redis, url: string): Promise<{ findings: Finding[]; clock?: Clock }> {
  let refusal = "no answer";
  const noteRefusal = (error: Error) => (refusal = error.message);
  redis.on("error", noteRefusal);
  try {
    if (!(await whenReady(redis, connectTimeoutMs))) return { findings: [unreachable(refusal)] };
    const clock = new Clock();
    await clock.read(redis);
    const info = readInfo(await redis.info());
    const findings = [
      examineRedisVersion(info),
      await examineWrites(redis),
      examineEviction(info),
      examinePersistence(info),
      examinePassword(url),
    ];
    return { findings, clock };
  } catch (error) {
    return { findings: [unreachable(error instanceof Error ? error.message : refusal)] };
  } finally {
    redis.off("error", noteRefusal);
  }
}

const unreachable = (found: string) =>
  failure("redis", found, "Check REDIS_URL, and that the server runs and is reachable.");

type Info = (name: string) => string;

/** `name:value` lines, as INFO writes them. */
function readInfo(text: string): Info {
  const values = new Map(text.split("\r\n").map((line) => [line.split(":", 1)[0], line.slice(line.indexOf(":") + 1)]));
  return (name) => values.get(name) ?? "";
}

function examineRedisVersion(info: Info): Finding {
  const valkey = info("valkey_version");
  const name = valkey === "" ? `Redis ${info("redis_version")}` : `Valkey ${valkey}`;
  if (info("redis_mode") === "cluster") return failure("redis", `${name}, a cluster`, "Use a single Redis or Valkey.");
  if (info("role") !== "master")
    return failure("redis", `${name}, a read-only replica`, "Point REDIS_URL to the primary.");
  if (Number.parseInt(info("redis_version"), 10) >= oldestVersions.redis) return ok("redis", name);
  return failure("redis", name, `Use Redis ${oldestVersions.redis} or newer, or Valkey.`);
}

/** Tries a write that changes nothing, because its key never exists. INFO does not show every reason to refuse writes. */
async function examineWrites(redis: Redis): Promise<Finding> {
  try {
    await redis.set(keysOf("org_doctor").balance, "", "XX");
    return ok("redis", "accepts writes");
  } catch (error) {
    if (!(error instanceof Error && error instanceof ReplyError)) throw error;
    const advice = "Remove the reason: until then every search is refused. The log of Redis may say more.";
    return failure("redis", `refuses writes: ${error.message}`, advice, "docs/operating/runbook.md#redisunreachable");
  }
}

function examineEviction(info: Info): Finding {
  const [policy, max, used] = [info("maxmemory_policy"), Number(info("maxmemory")), Number(info("used_memory"))];
  if (policy !== "noeviction")
    return failure(
      "redis",
      `evicts keys (${policy})`,
      "Set maxmemory-policy noeviction. Each evicted key loses a hold or an answer.",
    );
  if (max === 0) return warning("redis", "has no maxmemory", "Set maxmemory.");
  const found = `evicts nothing, uses ${Math.round((100 * used) / max)} % of maxmemory`;
  if (used < almostFull * max) return ok("redis", found);
  return warning("redis", found, "Raise maxmemory: a full Redis rejects new searches.");
}

function examinePersistence(info: Info): Finding {
  if (info("rdb_last_bgsave_status") === "err")
    return warning("redis", "failed to write a snapshot, so it may refuse every write", 'Set save "".');
  if (info("aof_enabled") !== "1") return warning("redis", "keeps no append-only file", "Set appendonly yes.");
  if (info("aof_last_bgrewrite_status") !== "err") return ok("redis", "keeps an append-only file");
  const advice = "Check the log of Redis. It may lack memory or room on its disk.";
  return warning("redis", "failed to rewrite its append-only file, which grows until the disk is full", advice);
}

function examinePassword(url: string): Finding {
  if (readRedisAddress(url)?.password !== undefined) return ok("redis", "requires a password");
  return warning("redis", "requires no password", "Give it users with passwords.", users);
}

/** @param aheadMs by how much each clock is ahead of this machine's. */
function examineClocks(aheadMs: Record<string, number | undefined>): Finding[] {
  const known = Object.entries(aheadMs).flatMap(([name, ms]) => (ms === undefined ? [] : { name, ms }));
  if (known.length === 0) return [];
  const times = [0, ...known.map(({ ms }) => ms)];
  const differenceMs = Math.round(Math.max(...times) - Math.min(...times));
  const names = new Intl.ListFormat("en-GB").format(["this machine", ...known.map(({ name }) => name)]);
  const found = `${names} differ by ${differenceMs} ms at most`;
  if (differenceMs <= clockDifferenceMaxMs) return [ok("clocks", found)];
  return [warning("clocks", found, "Synchronize the clocks of all machines (NTP).")];
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
function examineProviders(all: readonly ProviderHealth[]): Finding[] {
  const isServed = all.some(({ problem }) => problem === null);
  return all.map((health) => examineProvider(health, isServed));
}

function examineProvider({ provider, problem, balance }: ProviderHealth, isServed: boolean): Finding {
  if (problem !== null) {
    const advice = "Run npm run admin -- providers check.";
    const found = `${provider} ${problem}`;
    return isServed ? warning("providers", found, advice) : failure("providers", found, advice);
  }
  if (provider === "sandbox")
    return warning(
      "providers",
      "sandbox makes answers up",
      "Set SERP_PROVIDERS before you charge for answers.",
      "docs/operating/providers.md#choosing",
    );
  return ok("providers", balance === null ? provider : `${provider}, ${balance} left`);
}

/** Entries that Postgres lost, by organization. Searches are served all the same. @throws if Postgres does not answer. */
async function examineGaps(database: Database): Promise<Finding[]> {
  const { gaps, organizations, mils } = await countOpenGaps(database);
  if (gaps === 0) return [ok("ledger", "no entries were lost")];
  const shown = await listOpenGaps(database, gapsShownMax);
  const advice = "List them with npm run admin -- ledger gaps, and decide each.";
  const all = `entries of ${organizations} organizations were lost, ${mils} mils in all`;
  return [
    warning("ledger", all, advice),
    ...shown.map((gap) => warning("ledger", `${gap.organizationId} ${gap.mils} mils, ${gap.gapId}`, advice)),
  ];
}

/** Plans that sell searches below what the configured providers take for them. @throws if Postgres does not answer. */
async function examinePlans(database: Database, providers: readonly ProviderName[]): Promise<Finding[]> {
  const advice = "Give it a higher price, --price-per-page or --max-depth.";
  const margins = (await listPlans(database)).map((plan) => ({ plan, ...marginsOf(plan, providers) }));
  const losses = margins.flatMap(({ plan, belowCost }) =>
    belowCost.map((loss) => warning("plans", describeLoss(plan.code, loss), advice)),
  );
  const unknown = [...new Set(margins.flatMap(({ unknownCost }) => unknownCost))];
  const known = losses.length > 0 ? losses : [ok("plans", "no plan sells a search below a known cost")];
  return [...known, ...unknown.map((provider) => ok("plans", `the cost of a search at ${provider} is unknown`))];
}
