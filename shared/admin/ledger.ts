import type { Command } from "commander";
import { verifyLedger } from "../credits/verify.ts";
import { whenReady } from "../redis/connect.ts";
import { runCommand } from "./run-command.ts";

const redisReadyMs = 2_000;

export function addLedgerCommands(program: Command): void {
  program
    .command("ledger")
    .description("the ledger: every mil that moved")
    .command("verify")
    .description("check every invariant over all organizations, while the service runs; exit 1 where one is broken")
    .action(() =>
      runCommand(async ({ database, redis }) => {
        const reachable = await whenReady(redis, redisReadyMs);
        const verdict = await verifyLedger(database, reachable ? redis : undefined);
        if (!verdict.ok) process.exitCode = 1;
        return verdict;
      }),
    );
}
