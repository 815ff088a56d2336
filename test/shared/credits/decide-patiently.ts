import { retryWhile } from "../../../shared/concurrency/retry.ts";
import { decideSettlements, type SettlementRequest } from "../../../shared/credits/ledger.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { isLockTimeout } from "../../../shared/database/transient-errors.ts";

/** Decides searches that race with others for a row: on a busy machine one waits for longer than a settlement may. */
export const decidePatiently = (database: Database, requests: readonly SettlementRequest[]) =>
  retryWhile({ pauseMs: 10, mayRetry: isLockTimeout }, () => decideSettlements(database, requests));
