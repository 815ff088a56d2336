import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../../shared/database/pool.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { issueToken, listTokens } from "../../../shared/organizations/tokens.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

let database: Database;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ database, close } = await openFreshDatabase({ sizeMax: 1, timeZone: "Europe/Berlin" }));
});
afterAll(async () => {
  await close();
});

test("a token's days have 24 hours each, also where Postgres' own time zone changes its clocks", async () => {
  const made = await createOrganization(database, { name: "Test", planCode: "free" });
  const organizationId = made?.organizationId ?? "";
  // Some of these ends are in the other half of the year, whatever today is.
  const wanted = [60, 120, 180, 240, 300];
  for (const days of wanted) await issueToken(database, organizationId, days);
  const lasting = (await listTokens(database, organizationId)).map(
    ({ createdAt, expiresAt }) => ((expiresAt?.getTime() ?? 0) - createdAt.getTime()) / (24 * 3_600_000),
  );
  expect(lasting).toEqual(wanted);
});
