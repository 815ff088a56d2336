import { afterAll, expect, test } from "vitest";
import { issueToken, listTokens } from "../../../api/tokens/tokens.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

const { database } = await openFreshDatabase(afterAll, { sizeMax: 1, timeZone: "Europe/Berlin" });

test("each day of a token's validity has 24 hours, even if Postgres' time zone has daylight saving time", async () => {
  const organizationId = await createPayer(database, 0, "free");
  // Whatever today is, some of these ends have the other daylight saving offset.
  const wanted = [60, 120, 180, 240, 300];
  for (const days of wanted) await issueToken(database, organizationId, { expiresInDays: days });
  const validDays = (await listTokens(database, organizationId)).map(
    ({ createdAt, expiresAt }) => ((expiresAt?.getTime() ?? 0) - createdAt.getTime()) / (24 * 3_600_000),
  );
  // Tokens of the same millisecond are listed in the order of their random part.
  expect(validDays.toSorted((a, b) => a - b)).toEqual(wanted);
});
