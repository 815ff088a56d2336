import type { Command } from "commander";
import { verifyLedger } from "../credits/verify.ts";
import { whenReady } from "../redis/connect.ts";
import { refuseCluster } from "../redis/refuse-cluster.ts";
import { exitCodes } from "./exit-codes.ts";
import type { RunCommand } from "./run-command.ts";

const redisTimeoutMs = 2_000;

export function addLedgerCommands(program: Command, run: RunCommand): void {
  program
    .command("ledger")
    .description("the ledger: every mil that was granted, charged or credited back")
    .command("verify")
    .description("check every invariant of all organizations, while the service runs; exit 4 if one is broken")
    .action(() =>
      run(
        async ({ database, redis, warn }) => {
          const isReachable = await whenReady(redis, redisTimeoutMs);
          if (isReachable) await refuseCluster(redis);
          else warn("Redis is unreachable: only Postgres is checked.");
          return verifyLedger(database, isReachable ? redis : undefined);
        },
        { exitCode: ({ ok }) => (ok ? 0 : exitCodes.booksBroken) },
      ),
    );
}
