import type { LocalServer } from "../../../local/local-server.ts";
import type { ProviderStub } from "../../faults/random/provider.ts";
import type { Service } from "../../harness/processes/service.ts";
import type { SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import type { Searcher, Searches } from "./searches.ts";

/** A Postgres and a Redis, of which one has a second server, as processes and the auditor reach them. */
export interface Stores {
  /** The addresses for an API or a worker. */
  settings: (kind: "api" | "worker") => Record<string, string>;
  /** For the owner of the database, always at the primary. */
  databaseUrl: string;
  /** For commands of the auditor, always at the primary. */
  redis: LocalServer;
}

/** The service in front of its stores, and its callers. */
export interface FailoverStack {
  service: Service;
  apis: readonly [SupervisedProcess, SupervisedProcess];
  workers: SupervisedProcess[];
  provider: ProviderStub;
  searchers: Searcher[];
  searches: Searches;
}
