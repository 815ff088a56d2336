/**
 * Real servers for the tests. One throwaway Postgres for the whole run (this file is vitest's globalSetup); each
 * test that needs them gets its own database and Redis. With TEST_SERVERS=containers they run in Docker.
 */
import { inject } from "vitest";
import type { TestProject } from "vitest/node";
import { startPostgres } from "../../../local/postgres.ts";
import { startRedis } from "../../../local/redis.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import { type FreshDatabase, freshDatabaseIn } from "./fresh-database.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
    serversInContainers: boolean;
  }
}

/** Starts the shared Postgres before the first test. @returns stops it after the last. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const inContainers = process.env.TEST_SERVERS === "containers";
  const postgres = inContainers ? await (await import("./containers.ts")).containedPostgres() : await startPostgres();
  project.provide("postgresUrl", postgres.url);
  project.provide("serversInContainers", inContainers);
  return postgres.stop;
}

/** A new database with all migrations applied, in the Postgres of this run. */
export async function freshDatabase(): Promise<FreshDatabase> {
  return freshDatabaseIn(inject("postgresUrl"));
}

/** Where a stack of processes gets its own database and Redis. It says nothing meanwhile. */
export const stackServers = () => ({
  postgresUrl: inject("postgresUrl"),
  startRedis: freshRedis,
  say: () => undefined,
});

/** A new, empty Redis process, which the test may pause, kill and stop. */
export async function freshRedis(): Promise<LocalServer> {
  return inject("serversInContainers") ? (await import("./containers.ts")).containedRedis() : startRedis();
}
