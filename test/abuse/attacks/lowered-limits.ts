import { changeLimits, type LimitChange } from "../../../api/organizations/limits.ts";
import { publishIdentityChange } from "../../../shared/organizations/organizations.ts";
import { countCharges } from "../../faults/audit/accounts.ts";
import { tally } from "../../faults/scenarios/statistics.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { tenOrganic } from "../../harness/stubs/serper-stub.ts";
import type { Attack, Strength } from "../attack.ts";

const searchesPerRound = 9;
const refusedMsMax = 10_000;
const rounds: Record<Strength, number> = { quick: 2, full: 10 };
const none: LimitChange = { dayMils: null, monthMils: null };
const room: LimitChange = { dayMils: 500_000, monthMils: 500_000 };
const nothing: LimitChange = { dayMils: 0, monthMils: 0 };

/** A payer sets its limits to 0 while its searches run at the provider. */
export const loweredLimits: Attack = {
  name: "lowered-limits",
  tried: `limits of organization and token lowered to 0 while ${searchesPerRound} searches run, a third of them under keys, then removed or raised, again and again`,
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
    const refusedAt0: boolean[] = [];
    for (let round = 0; round < rounds[strength]; round += 1) {
      const search = () => callers.search(apiUrl, token, `alone ${round}`);
      await limit(round % 2 === 0 ? none : room);
      await service.until(async () => (await search()).status === 200);
      const release = provider.hold();
      const asked = provider.requests.length + searchesPerRound;
      const running = Array.from({ length: searchesPerRound }, (_, n) => {
        const key = n % 3 === 0 ? `lowered-${round}-${n}` : undefined;
        return callers.search(apiUrl, token, `lowered ${round} ${n}`, key);
      });
      await service.until(async () => provider.requests.length >= asked);
      await limit(nothing);
      release();
      statuses.push(...(await Promise.all(running)).map(({ status }) => status));
      provider.otherwise = tenOrganic;
      refusedAt0.push(await becomes(async () => (await search()).status === 402, refusedMsMax));
    }
    await service.rest();
    const charges = await countCharges(service.database, organizationId);
    const asked = provider.requests.length - before;
    return [
      {
        promised: "each search that was sent to the provider is answered and paid for",
        seen: `${asked} provider calls, ${tally(statuses)}, ${charges} charges`,
        held: charges === asked && statuses.every((status) => status === 200),
      },
      {
        promised: "at the limit of 0 a new search gets 402",
        seen: tally(refusedAt0.map((isRefused) => (isRefused ? "refused" : "not refused"))),
        held: refusedAt0.every(Boolean),
      },
    ];
  },
};
