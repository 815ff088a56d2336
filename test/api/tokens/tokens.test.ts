import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../../shared/database/pool.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { issueToken, listTokens } from "../../../api/tokens/tokens.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

let database: Database;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ database, close } = await openFreshDatabase({ sizeMax: 1, timeZone: "Europe/Berlin" }));
});
afterAll(async () => {
  await close();
});

test("each day of a token's validity has 24 hours, even if Postgres' time zone has daylight saving time", async () => {
  const created = await createOrganization(database, { name: "Test", planCode: "free" });
  const organizationId = created?.organizationId ?? "";
  // Whatever today is, some of these ends have the other daylight saving offset.
  const wanted = [60, 120, 180, 240, 300];
  for (const days of wanted) await issueToken(database, organizationId, { expiresInDays: days });
  const validDays = (await listTokens(database, organizationId)).map(
    ({ createdAt, expiresAt }) => ((expiresAt?.getTime() ?? 0) - createdAt.getTime()) / (24 * 3_600_000),
  );
  expect(validDays).toEqual(wanted);
});
