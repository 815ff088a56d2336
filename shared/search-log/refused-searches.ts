import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { rowOf, valueOf } from "../database/row.ts";
import { timeOfId } from "../ids.ts";
import { type Query, querySchema } from "../query/query.ts";

/** The searches that were refused before they ran, so that no ledger entry and no refund has them. */

const keptDaysMax = 7;
/** A page looks at no more rows of an organization. */
const scannedMax = 10_000;

/** Those fields of a refused search that were valid. */
type RefusedQuery = Partial<Omit<Query, "engine">>;

/** A row: one refused search, or the last one of several that are only counted. */
export interface RefusedSearch {
  requestId: string;
  organizationId: string;
  tokenId: string;
  /** The code of the error, and the reason in its details. */
  code: string;
  reason: string | undefined;
  message: string;
  /** Undefined in a row that counts. */
  query: RefusedQuery | undefined;
  /** 1, or how many the row counts. */
  refusals: number;
}

/** Writes the rows in one round trip. Those of an organization that was erased meanwhile are left out. */
export async function insertRefused(database: Database, refused: readonly RefusedSearch[]): Promise<void> {
  await database.query({
    name: "insert_refused_searches",
    text: `insert into refused_searches (at, request_id, organization_id, token_id, code, reason, message, query, refusals)
      select s.* from json_to_recordset($1) as s (at timestamptz, "requestId" text, "organizationId" text, "tokenId" text, code text,
        reason text, message text, query jsonb, refusals integer)
      join organizations o on o.id = s."organizationId" and o.erased_at is null
      order by s."organizationId", s.at, s."requestId"
      on conflict do nothing`,
    values: [JSON.stringify(refused.map((row) => ({ at: timeOfId(row.requestId), ...row })))],
  });
}

const refusedRow = rowOf({
  at: z.date(),
  requestId: z.string(),
  organizationId: z.string(),
  tokenId: z.string(),
  tokenName: z.string().nullable(),
  tokenLast4: z.string().nullable(),
  code: z.string(),
  reason: z.string().nullable(),
  message: z.string(),
  query: querySchema.omit({ engine: true }).partial().nullable(),
  refusals: z.number(),
});

/** A refused search as people and operators read it. */
export type LoggedRefusal = z.infer<typeof refusedRow>;

const columns = `r.at, r.request_id, r.organization_id, r.token_id, t.name as token_name, t.last4 as token_last4, r.code, r.reason,
  r.message, r.query, r.refusals`;

/** Finds a refused search, of any organization for operators. */
export async function findRefused(
  database: Database,
  requestId: string,
  organizationId?: string,
): Promise<LoggedRefusal | undefined> {
  const { rows } = await database.query(
    `select ${columns} from refused_searches r left join tokens t on t.id = r.token_id
     where r.at = $1 and r.request_id = $2 and ($3::text is null or r.organization_id = $3)`,
    [timeOfId(requestId), requestId, organizationId ?? null],
  );
  return rows[0] && refusedRow.parse(rows[0]);
}

/** Which rows of an organization are looked at: those before a request id. */
interface Scanned {
  before?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
}

const beginOf = ({ before, until }: Scanned) => (before === undefined ? (until ?? "infinity") : timeOfId(before));

/**
 * Reads the refused searches of an organization, newest first, among the newest 10,000 rows before a request id. `find` is a part of
 * the keyword.
 */
export async function readRefused(
  database: Database,
  organizationId: string,
  wanted: Scanned & { find?: string | undefined; tokenId?: string | undefined; limit: number },
): Promise<LoggedRefusal[]> {
  const { find, tokenId, before, since, limit } = wanted;
  const { rows } = await database.query(
    `select ${columns}
     from (select * from refused_searches where organization_id = $1 and at <= $2 and (at, request_id) < ($2, $3) and at >= $8
       order by at desc, request_id desc limit $7) r
     left join tokens t on t.id = r.token_id
     where ($4::text is null or r.token_id = $4)
       and ($5::text is null or position(lower($5) in lower(r.query ->> 'keyword')) > 0)
     order by r.at desc, r.request_id desc limit $6`,
    [
      organizationId,
      beginOf(wanted),
      before ?? "",
      tokenId ?? null,
      find ?? null,
      limit,
      scannedMax,
      since ?? "-infinity",
    ],
  );
  return rows.map((row) => refusedRow.parse(row));
}

/** The request id of the last row that {@link readRefused} looks at; undefined if there are fewer rows than it may look at. */
export async function findLastScanned(
  database: Database,
  organizationId: string,
  scanned: Scanned,
): Promise<string | undefined> {
  const { rows } = await database.query(
    `select request_id from refused_searches where organization_id = $1 and at <= $2 and (at, request_id) < ($2, $3) and at >= $5
     order by at desc, request_id desc offset $4 limit 1`,
    [organizationId, beginOf(scanned), scanned.before ?? "", scannedMax - 1, scanned.since ?? "-infinity"],
  );
  return rows[0] && valueOf(z.string(), rows[0]);
}

/**
 * Deletes at most `limit` rows that are older than a week, or than the search log keeps its own.
 * @param searchLogDays with 0 all rows are old.
 */
export async function clearOldRefused(database: Database, searchLogDays: number, limit: number): Promise<void> {
  await database.query(
    `delete from refused_searches where (organization_id, at, request_id) in (
       select organization_id, at, request_id from refused_searches
       where at < now() - make_interval(hours => 24 * $1) order by at limit $2)`,
    [Math.min(keptDaysMax, searchLogDays), limit],
  );
}
