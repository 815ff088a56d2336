import { stringify } from "csv-stringify/sync";
import type { Statement } from "../../../shared/credits/statement.ts";
import type { Database } from "../../../shared/database/pool.ts";
import type { PageSender } from "../../pages/page-sender.ts";
import type { AccountRequest } from "../frame/account-handlers.ts";
import { statementOf } from "./statement.ts";

const columns = ["time_utc", "kind", "id", "note", "searches", "mils", "usd", "balance_mils"] as const;
const kinds = { grant: "credit_added", correction: "credit_corrected" };
type Row = Partial<Record<(typeof columns)[number], string | number>>;

/**
 * GET /billing/statements.csv?month=2026-03: the statement of a month. The first row has the opening balance, the last one the
 * closing balance; the amounts between them add up to the difference.
 */
export function sendStatementCsv({ pages, database }: { pages: PageSender; database: Database }) {
  return async ({ request, response, caller: { organizationId } }: AccountRequest): Promise<void> => {
    const statement = await statementOf(database, organizationId, request.query["month"]);
    // A text that a spreadsheet would run as a formula is escaped.
    const text = stringify([...rowsOf(statement)], { columns: [...columns], header: true, escape_formulas: true });
    pages.setHeaders(response);
    response.setHeader("Content-Type", "text/csv; charset=utf-8");
    response.setHeader("Content-Disposition", `attachment; filename="serpmill-statement-${statement.month}.csv"`);
    response.end(text);
  };
}

function* rowsOf(statement: Statement): Generator<Row> {
  const { month, openingMils, closingMils, credits, unlistedMils, days } = statement;
  yield { time_utc: `${month}-01`, kind: "opening_balance", balance_mils: openingMils };
  for (const { kind, at, id, note, mils } of credits)
    yield { time_utc: at.toISOString(), kind: kinds[kind], id, note, ...sumOf(mils) };
  if (unlistedMils !== 0) yield { time_utc: month, kind: "further_credit", ...sumOf(unlistedMils) };
  for (const { day, charges, chargedMils, reversals, reversedMils } of days) {
    if (charges > 0) yield { time_utc: day, kind: "charged", searches: charges, ...sumOf(-chargedMils) };
    if (reversals > 0) yield { time_utc: day, kind: "credited_back", searches: reversals, ...sumOf(reversedMils) };
  }
  yield { time_utc: days.at(-1)?.day ?? month, kind: "closing_balance", balance_mils: closingMils };
}

/** An amount in mils and in dollars, as numbers: a text that begins with a minus would be escaped. */
const sumOf = (mils: number) => ({ mils, usd: mils / 1_000 });
