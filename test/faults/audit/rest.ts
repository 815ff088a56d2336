import { holdIndexKey, openOrganizationsKey } from "../../../shared/credits/redis-keys.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { readBacklog } from "../../harness/assertions/backlog.ts";
import type { Service } from "../../harness/processes/service.ts";

const restMsMax = 60_000;

/**
 * Waits until nothing is in flight. Charges that no running API confirms within `confirmMsMax` are backdated, so that the reconciler
 * reverses them.
 * @throws if something stays in flight.
 */
export async function untilAtRest(
  service: Service,
  organizationIds: readonly string[],
  confirmMsMax: number,
): Promise<void> {
  const isIdle = async () => {
    const { waiting, running } = await readBacklog(service.redis);
    if (waiting + running > 0) return false;
    if ((await service.redis.exists(holdIndexKey, openOrganizationsKey)) > 0) return false;
    const holds = await Promise.all(organizationIds.map((organizationId) => service.holdsOf(organizationId)));
    return holds.every(({ open, heldMils }) => open === 0 && heldMils === 0);
  };
  await insist("no job and no hold is left", isIdle);
  const isConfirmed = async () => (await countUndelivered(service)) === 0;
  // The running APIs confirm what they delivered.
  if (!(await becomes(isConfirmed, confirmMsMax))) {
    await service.age();
    await insist("no charge is left unconfirmed", isConfirmed);
  }
  await insist("no job and no hold is left in the end", isIdle);
}

async function insist(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  if (!(await becomes(isTrue, restMsMax))) throw new Error(`not within ${restMsMax} ms: ${what}`);
}

async function countUndelivered({ database }: Service): Promise<number> {
  const { rows } = await database.query("select count(*) as open from undelivered");
  return Number(rows[0].open);
}
