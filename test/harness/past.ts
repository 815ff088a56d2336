import { createHash } from "node:crypto";
import { newId } from "../../shared/ids.ts";
import type { Database } from "../../shared/database/pool.ts";

/** An entry of the ledger that is to have been made some time ago. */
export type PastEntry = { at: Date } & (
  | { kind: "grant"; mils: number; reason?: string }
  | { kind: "charge"; mils: number; requestId?: string }
  | { kind: "refund"; reason: string }
  | { kind: "reversal"; mils: number; requestId: string; reason: string }
);

/** Writes what the ledger's functions would have written at the time. Entries are oldest first. */
export async function writePast(database: Database, organizationId: string, past: readonly PastEntry[]) {
  const { rows } = await database.query("select balance_mils, version from organizations where id = $1", [
    organizationId,
  ]);
  let { balance_mils: balance, version } = rows[0];
  const written = past.map((entry) => {
    const amount = entry.kind === "refund" ? 0 : entry.kind === "charge" ? -entry.mils : entry.mils;
    balance += amount;
    version += 1;
    const requestId = entry.kind === "grant" ? null : ("requestId" in entry && entry.requestId) || newId("req");
    return {
      organization_id: organizationId,
      version,
      kind: entry.kind,
      amount_mils: amount,
      balance_after_mils: balance,
      request_id: requestId,
      grant_id: entry.kind === "grant" ? newId("grant") : null,
      reason: "reason" in entry ? entry.reason : entry.kind === "grant" ? "operator" : null,
      created_at: entry.at,
    };
  });
  await database.query(
    "insert into ledger_entries select * from jsonb_populate_recordset(null::ledger_entries, $1::jsonb)",
    [JSON.stringify(written)],
  );
  await database.query("update organizations set balance_mils = $2, version = $3 where id = $1", [
    organizationId,
    balance,
    version,
  ]);
}

const hourMs = 3_600_000;

/** A month of an organization that searches more on some days than on others; the same each time, up to today's hour. */
export function aMonth(now: Date, perHourMax = 6): PastEntry[] {
  const entries: PastEntry[] = [{ at: hoursBefore(now, 720), kind: "grant", mils: 50_000, reason: "bank transfer" }];
  for (let hour = 719; hour >= 0; hour -= 1) {
    const searches = Math.floor(chance(`hour ${hour}`) * chance(`day ${Math.floor(hour / 24)}`) * perHourMax * 2);
    for (let nth = 0; nth < searches; nth += 1) {
      const at = new Date(hoursBefore(now, hour).getTime() + nth * 1_000);
      const fate = chance(`${hour}/${nth}`);
      if (fate < 0.05) entries.push({ at, kind: "refund", reason: fate < 0.03 ? "engine_timeout" : "engine_error" });
      else {
        const requestId = newId("req");
        entries.push({ at, kind: "charge", mils: 5, requestId });
        if (fate > 0.985) entries.push({ at, kind: "reversal", mils: 5, requestId, reason: "caller_gone" });
      }
    }
    if (hour === 200) entries.push({ at: hoursBefore(now, hour), kind: "grant", mils: 25_000, reason: "invoice 2041" });
  }
  return entries;
}

const hoursBefore = (now: Date, hours: number) => new Date(now.getTime() - hours * hourMs);

/** A number from 0 to 1 that is always the same for the same text. */
const chance = (of: string) => createHash("sha256").update(of).digest().readUInt32BE(0) / 2 ** 32;
