import { z } from "zod";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { readCredit } from "../../../shared/credits/ledger.ts";
import { becomes, eventually } from "../../harness/assertions/eventually.ts";
import type { Service } from "../../harness/processes/service.ts";
import { type Accounts, isStanding } from "./accounts.ts";
import type { AuditedCustomer } from "./evidence.ts";

const repairMsMax = 60_000;
const usageBody = z.object({ creditBalanceMils: z.number() });

/** The balance is all grants and corrections minus all standing charges. Postgres, Redis and every API agree on it. */
export async function wrongBalances(
  { database, redis }: Service,
  customers: readonly AuditedCustomer[],
  accounts: Accounts,
  apiUrls: readonly string[],
): Promise<string[]> {
  const found = await Promise.all(
    customers.map(async ({ organizationId, token, grantedMils }) => {
      const standing = [...accounts.byRequest.values()].filter(
        (account) => account.organizationId === organizationId && isStanding(account),
      );
      const expected = standing.reduce((left, charge) => left + charge.mils, grantedMils);
      // Without a copy in Redis the next search makes one. The reconciler repairs an older copy.
      const copy = async () => {
        const balance = await redis.hget(keysOf(organizationId).balance, "balance");
        return balance === null ? expected : Number(balance);
      };
      await becomes(async () => (await copy()) === expected, repairMsMax);
      const seen: Record<string, number | undefined> = {
        Postgres: (await readCredit(database, organizationId))?.balance.balanceMils,
        Redis: await copy(),
      };
      for (const [at, url] of apiUrls.entries()) seen[`API ${at}`] = await usageOf(url, token);
      return Object.entries(seen)
        .filter(([, mils]) => mils !== expected)
        .map(([source, mils]) => `${organizationId}: ${source} says ${mils} mils, ${expected} are right`);
    }),
  );
  return found.flat();
}

/** The available balance that the API reports, once the rate window allows the request. */
async function usageOf(apiUrl: string, token: string): Promise<number> {
  let body: unknown;
  await eventually(async () => {
    const response = await fetch(`${apiUrl}/v1/usage`, { headers: { authorization: `Bearer ${token}` } });
    body = await response.json();
    return response.ok;
  });
  return usageBody.parse(body).creditBalanceMils;
}
