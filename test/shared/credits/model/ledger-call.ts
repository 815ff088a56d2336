import type { Database } from "../../../../shared/database/pool.ts";
import type { Model } from "./model.ts";
import type { PostgresModel } from "./postgres-state.ts";

/** A call of Postgres: its expected effect and result, the real call, and the messages that it sends to Redis. */
export interface LedgerCall {
  kind: "decide" | "reverse" | "confirm" | "grant" | "correct" | "limit";
  description: string;
  organizationIds: string[];
  predict: (postgres: PostgresModel) => unknown;
  make: (database: Database) => Promise<unknown>;
  /** Applies the predicted result to the rest of the model: messages, confirmed deliveries. */
  apply: (model: Model) => void;
}
