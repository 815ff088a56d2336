import { expect, test } from "vitest";
import { reverseCharges } from "../../shared/credits/deliveries.ts";
import { decideSettlements } from "../../shared/credits/ledger.ts";
import type { RefundReason } from "../../shared/outcomes.ts";
import { newId } from "../../shared/ids.ts";
import { Operator } from "../harness/processes/operator.ts";
import { usualService } from "../harness/processes/usual-stack.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";

/** `search show` and `search failures`. */

const service = await usualService();
const operator = new Operator(service);

test("a search that the log does not have is shown as it was decided, and one that was not decided is refused", async () => {
  const { organizationId } = await service.organization();
  const requestId = await refund(organizationId, "swept");
  const shown = await operator.try("search", "show", requestId);
  expect(shown).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("The search log has no row for it") });
  expect(JSON.parse(shown.stdout)).toMatchObject({ outcome: "refunded", reason: "swept", keyword: null, calls: [] });
  const off = await new Operator(service, { SEARCH_LOG_DAYS: "0" }).try("search", "show", requestId);
  expect(off).toMatchObject({ exitCode: 0, stderr: "SEARCH_LOG_DAYS is 0, so the search log is off.\n" });
  for (const unknown of [newId("req"), "req_7zzzzzzzzzzzzzzzzzzzzzzzzz"]) {
    const { exitCode, stderr } = await operator.try("search", "show", unknown);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: `There is no search ${unknown} that ended. It still runs, was refused before it ran and its row was only counted or is older than seven days, ended without a charge more than 30 days ago, or does not exist.\n`,
    });
  }
});

async function refund(organizationId: string, reason: RefundReason): Promise<string> {
  const requestId = newId("req");
  await decideSettlements(service.database, [{ organizationId, requestId, wanted: "refund", reason }]);
  return requestId;
}

async function reverse(organizationId: string): Promise<string> {
  const charge = chargeOf(organizationId);
  await decideSettlements(service.database, [charge]);
  await reverseCharges(service.database, [charge], "undelivered");
  return charge.requestId;
}

test("search failures counts by reason what cost nothing, of all organizations or one, since a time", async () => {
  const [one, other] = [await service.organization(), await service.organization()];
  await refund(one.organizationId, "engine_timeout");
  const since = new Date();
  await service.until(async () => Date.now() > since.getTime());
  const ofOne = await refund(one.organizationId, "engine_timeout");
  const reversed = await reverse(one.organizationId);
  const ofOther = await refund(other.organizationId, "engine_timeout");

  const timeout = { reason: "engine_timeout", outcome: "not charged" };
  const undelivered = { reason: "undelivered", outcome: "credited back", searches: 1, organizations: 1 };
  const time = ["--since", since.toISOString()];
  expect(await operator.run("search", "failures", ...time)).toEqual({
    since: since.toISOString(),
    failures: [
      { ...timeout, searches: 2, organizations: 2, lastRequestId: ofOther },
      { ...undelivered, lastRequestId: reversed },
    ],
  });
  expect(await operator.run("search", "failures", "--org", one.organizationId, ...time)).toMatchObject({
    failures: expect.arrayContaining([{ ...timeout, searches: 1, organizations: 1, lastRequestId: ofOne }]),
  });
  expect(await operator.run("search", "failures", "--org", one.organizationId)).toMatchObject({
    failures: [{ ...timeout, searches: 2 }, undelivered],
  });
});
