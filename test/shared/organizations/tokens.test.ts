import { afterAll, beforeAll, expect, test } from "vitest";
import { Closing } from "../../../shared/closing.ts";
import { type Database, openDatabase } from "../../../shared/database/pool.ts";
import { openLog } from "../../../shared/log.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { issueToken, listTokens } from "../../../shared/organizations/tokens.ts";
import { freshDatabase } from "../../harness/servers.ts";

const log = openLog({ name: "test", level: "silent" });
const closing = new Closing();
let database: Database;
let drop: () => Promise<void>;
beforeAll(async () => {
  const fresh = await freshDatabase();
  drop = fresh.drop;
  const url = new URL(fresh.url);
  url.search = "?options=-c%20timezone%3DEurope/Berlin";
  database = openDatabase({ url: url.href, name: "test", sizeMax: 1, log, closing });
});
afterAll(async () => {
  await closing.run(log);
  await drop();
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
