import { changeLimits, type LimitChange } from "../../../api/organizations/limits.ts";
import { publishIdentityChange } from "../../../shared/organizations/organizations.ts";
import { readAccounts } from "../../faults/audit/accounts.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { tenOrganic } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Strength } from "../attack.ts";

const searchesPerRound = 9;
const rounds: Record<Strength, number> = { quick: 1, full: 10 };
const none: LimitChange = { dayMils: null, monthMils: null };
const nothing: LimitChange = { dayMils: 0, monthMils: 0 };

/** A payer that has its searches asked for, and then allows itself nothing. */
export const loweredLimits: Attack = {
  name: "lowered-limits",
  tried: `limits of organization and token lowered to 0 while ${searchesPerRound} searches run, a third of them under keys, then removed, again and again`,
  run: async ({ service, provider, callers, apiUrl }, strength) => {
    const terms = { windowLimit: 1_000_000, concurrency: 100 };
    const { organizationId, token, tokenId } = await service.organization({ creditMils: 1_000_000, terms });
    const limit = async (change: LimitChange) => {
      await changeLimits(service.database, "organization", organizationId, change);
      await changeLimits(service.database, "token", tokenId, change);
      await publishIdentityChange(service.redis);
    };
    const before = provider.requests.length;
    const statuses: number[] = [];
    for (let round = 0; round < rounds[strength]; round += 1) {
      const release = provider.hold();
      await limit(none);
      const asked = provider.requests.length + searchesPerRound;
      const running = Array.from({ length: searchesPerRound }, (_, n) => {
        const key = n % 3 === 0 ? `lowered-${round}-${n}` : undefined;
        return callers.search(apiUrl, token, `lowered ${round} ${n}`, key);
      });
      await service.until(async () => provider.requests.length >= asked);
      await limit(nothing);
      release();
      statuses.push(...(await Promise.all(running)).map(({ status }) => status));
    }
    provider.otherwise = tenOrganic;
    await service.rest();
    const { byRequest } = await readAccounts(service.database, [organizationId]);
    const charges = [...byRequest.values()].filter(({ decided }) => decided === "charge").length;
    const asked = provider.requests.length - before;
    return [
      {
        promised: "each search that a provider was asked for is answered and paid",
        seen: `${asked} provider calls, ${tally(statuses.map(String))}, ${charges} charges`,
        held: asked > 0 && charges === asked && statuses.every((status) => status === 200),
      },
    ];
  },
};
