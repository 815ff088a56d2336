import { retryWhile } from "../../../shared/concurrency/retry.ts";
import { readCredit } from "../../../shared/credits/ledger.ts";
import { changeLimits, type LimitChange } from "../../../api/organizations/limits.ts";
import { publishIdentityChange } from "../../../shared/organizations/organizations.ts";
import type { Service } from "../../harness/processes/service.ts";
import type { LimitsInForce } from "../audit/spending-evidence.ts";

const retryPauseMs = 200;

/** The owner of limits: an organization or one of its tokens. */
export interface LimitOwner {
  kind: "organization" | "token";
  organizationId: string;
  id: string;
}

/** Changes limits, and records the ledger versions at which each may have been in force. */
export class LimitChanges {
  readonly inForce: LimitsInForce[] = [];
  readonly #service: Service;

  constructor(service: Service) {
    this.#service = service;
  }

  /** Retries until it succeeds. APIs that miss the announcement continue with the old limits. */
  async change({ kind, organizationId, id }: LimitOwner, { dayMils, monthMils }: LimitChange): Promise<void> {
    const { database, redis } = this.#service;
    const persist = <T>(step: () => Promise<T>) => retryWhile({ pauseMs: retryPauseMs, mayRetry: () => true }, step);
    const readVersion = () => persist(async () => (await readCredit(database, organizationId))?.balance.version ?? 0);
    const last = this.inForce.findLast(({ ownerId }) => ownerId === id);
    const next: LimitsInForce = {
      organizationId,
      ownerId: id,
      day: dayMils === undefined ? (last?.day ?? null) : dayMils,
      month: monthMils === undefined ? (last?.month ?? null) : monthMils,
      fromVersion: (await readVersion()) + 1,
      toVersion: Number.POSITIVE_INFINITY,
      replacedAtMs: Number.POSITIVE_INFINITY,
    };
    this.inForce.push(next);
    await persist(() => changeLimits(database, kind, id, { dayMils, monthMils }));
    if (last) {
      last.replacedAtMs = Date.now();
      last.toVersion = await readVersion();
    }
    await publishIdentityChange(redis).catch(() => undefined);
  }
}
