import { afterAll, expect, test } from "vitest";
import { DeliveryConfirmations } from "../../../api/search/delivery.ts";
import { decideSettlements, readCredit } from "../../../shared/credits/ledger.ts";
import { readUnpaidCalls } from "../../../shared/credits/unpaid-calls.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import type { ReversalReason } from "../../../shared/outcomes.ts";
import type { PayableCalls } from "../../../shared/queue/replies.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { callerWith } from "../../harness/fixtures/caller.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";

const { redis } = await openFreshRedis(afterAll);
// As many connections as an API has.
const { database, url } = await openFreshDatabase(afterAll, { sizeMax: 5 });

const log = openLog({ name: "test", level: "silent" });
const metrics = openMetrics();
const confirmations = new DeliveryConfirmations({ database, redis, metrics, log });

test("an answer that was not taken counts as one unpaid call if its search made none, and one that was too late does not", async () => {
  const organizationId = await createPayer(database, 100);
  const caller = callerWith({ organizationId });
  const reversed = async (...end: [reason: ReversalReason, unpaid?: PayableCalls]) => {
    const charge = chargeOf(organizationId);
    await decideSettlements(database, [charge]);
    await confirmations.reverse({ requestId: charge.requestId, caller }, ...end);
    return readUnpaidCalls(redis, caller);
  };
  expect(await reversed("engine_timeout")).toBe(0);
  expect(await reversed("caller_disconnected")).toBe(1);
  expect(await reversed("caller_disconnected", { flight: "shared", calls: 0 })).toBe(2);
  expect(await reversed("caller_disconnected", { flight: "own", calls: 3 })).toBe(5);
});

test("reversals that wait for a locked organization leave connections for everything else", async () => {
  const organizationId = await createPayer(database, 100);
  const charges = Array.from({ length: 20 }, () => chargeOf(organizationId));
  await decideSettlements(database, charges);
  await asOwner(url, async (owner) => {
    await owner.query("begin");
    await owner.query("select from organizations where id = $1 for update", [organizationId]);
    const caller = callerWith({ organizationId });
    for (const { requestId } of charges) void confirmations.reverse({ requestId, caller }, "caller_disconnected");
    await eventually(async () => (await owner.query("select from pg_locks where not granted")).rowCount !== 0);
    expect(database.waitingCount).toBe(0);
    await owner.query("commit");
  });
  await confirmations.idle();
  expect(await readCredit(database, organizationId)).toMatchObject({ balance: { balanceMils: 100, version: 41 } });
});

test("the reversals of a locked organization delay those of another one by a turn, however many there are", async () => {
  const [locked, other] = [await createPayer(database, 100), await createPayer(database, 100)];
  const [charges, charge] = [Array.from({ length: 20 }, () => chargeOf(locked)), chargeOf(other)];
  await decideSettlements(database, [...charges, charge]);
  const failuresBefore = await countFailures();
  await asOwner(url, async (owner) => {
    await owner.query("begin");
    await owner.query("select from organizations where id = $1 for update", [locked]);
    const caller = callerWith({ organizationId: locked });
    for (const { requestId } of charges) void confirmations.reverse({ requestId, caller }, "caller_disconnected");
    const { requestId } = charge;
    await confirmations.reverse({ requestId, caller: callerWith({ organizationId: other }) }, "caller_disconnected");
    // The two attempts that were under way.
    expect((await countFailures()) - failuresBefore).toBeLessThanOrEqual(2);
    await owner.query("commit");
  });
  await confirmations.idle();
  expect(await readCredit(database, other)).toMatchObject({ balance: { balanceMils: 100 } });
});

async function countFailures(): Promise<number> {
  const { values } = await metrics.backgroundErrors.get();
  return values.find(({ labels }) => labels.where === "deliveries")?.value ?? 0;
}
