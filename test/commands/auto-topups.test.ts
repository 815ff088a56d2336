import { expect, test } from "vitest";
import { savedCard } from "../harness/fixtures/saved-card.ts";
import { Operator } from "../harness/processes/operator.ts";
import { usualService } from "../harness/processes/usual-stack.ts";

/** What operators see of automatic top-ups, and how they switch them off. */

const service = await usualService();
const operator = new Operator(service, { OPERATOR_NAME: "ada" });

const terms = { thresholdMils: 1, amountMils: 10_000, ceilingMils: 50_000 };

test("an organization that never saved a card has its automatic top-up off, and no terms and payments", async () => {
  const { orgId } = await operator.create("free");
  const none = { thresholdMils: null, amountMils: null, ceilingMils: null, customerId: null, card: null, payments: [] };
  const shown = { orgId, state: "off", pausedAt: null, pauseReason: null, monthMils: 0, ...none };
  expect(await operator.run("auto-topup", "show", orgId)).toEqual(shown);
  expect(await operator.run("auto-topup", "off", orgId, "--reason", "other")).toEqual({ orgId, switchedOff: false });
});

test("switching off keeps card and terms, ends a pause, and records the reason once", async () => {
  const { orgId } = await operator.create("free");
  await savedCard(service.database, orgId, 1);
  await service.database.query(
    "update auto_topups set paused_at = now(), pause_reason = 'refused' where organization_id = $1",
    [orgId],
  );
  const paused = { state: "paused", pauseReason: "refused", ...terms, card: { brand: "visa", last4: "4242" } };
  expect(await operator.run("auto-topup", "show", orgId)).toMatchObject(paused);

  const off = ["auto-topup", "off", orgId, "--reason", "disputed"] as const;
  expect(await operator.run(...off)).toEqual({ orgId, switchedOff: true });
  expect(await operator.run(...off)).toEqual({ orgId, switchedOff: false });
  const shown = { ...paused, state: "off", pausedAt: null, pauseReason: null };
  expect(await operator.run("auto-topup", "show", orgId)).toMatchObject(shown);
  expect(await operator.run("audit", "list", "--org", orgId, "--action", "auto_topup.set")).toMatchObject({
    entries: [{ actor: "ada", before: { isOn: true }, after: { isOn: false, reason: "disputed" } }],
  });
});

test("payments are listed newest first, as many as asked for", async () => {
  const { orgId } = await operator.create("free");
  await savedCard(service.database, orgId, 1);
  const [first, second] = [1, 2].map((n) => ({ paymentId: `pay_${"0".repeat(25)}${n}`, intent: `pi_${n}` }));
  for (const paid of [second, first]) {
    const age = paid === first ? "1 hour" : "1 minute";
    const values = [orgId, paid?.paymentId, paid?.intent, age];
    await service.database.query("select pay_auto_topup($1, $2, $3, 10000, now() - $4::interval)", values);
  }
  const paid = { mils: 10_000, state: "paid", failure: null };
  expect(await operator.run("auto-topup", "show", orgId)).toMatchObject({
    payments: [
      { paymentId: second?.paymentId, paymentIntentId: "pi_2", ...paid },
      { paymentId: first?.paymentId, paymentIntentId: "pi_1", ...paid },
    ],
  });
  const [newest] = [{ paymentId: second?.paymentId }];
  expect(await operator.run("auto-topup", "show", orgId, "--limit", "1")).toMatchObject({ payments: [newest] });
});
