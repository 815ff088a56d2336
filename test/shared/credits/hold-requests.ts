import type { Redis } from "ioredis";
import type { AdmissionRequest } from "../../../shared/credits/admit.ts";
import { storeBalance } from "../../../shared/credits/stored-balances.ts";
import { newId } from "../../../shared/ids.ts";

export const plan = {
  code: "test",
  priceMils: 5,
  windowLimit: 1_000,
  windowSeconds: 60,
  concurrency: 100,
  unpaidCalls: 60,
  startingGrantMils: 0,
  operations: [],
};

/** A new organization with this balance in Redis. */
export async function seed(redis: Redis, balanceMils: number, version = 1): Promise<string> {
  const organizationId = newId("org");
  await storeBalance(redis, organizationId, { balanceMils, version });
  return organizationId;
}

export const request = (organizationId: string, given: Partial<AdmissionRequest> = {}): AdmissionRequest => ({
  organizationId,
  tokenId: "tok",
  requestId: newId("req"),
  priceMils: 5,
  budgetMs: 30_000,
  plan,
  key: undefined,
  ...given,
});
