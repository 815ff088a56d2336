import { stringify } from "csv-stringify/sync";
import { readStatement, type Statement, statementMonths } from "../../ledger/statement.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { showOrganization } from "../../../shared/organizations/organizations.ts";
import type { AccountView } from "../frame/account-frame.ts";
import type { AccountRequest, PageRequest } from "../frame/account-handlers.ts";
import { amount, count, dayOf, monthOf, timeElement } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import type { PageSender } from "../../pages/page-sender.ts";

/** GET /billing/statements/:month: a month of the ledger, such as `2026-03`. */
export async function writeStatement(
  { database }: { database: Database },
  { request, caller: { organizationId } }: PageRequest,
): Promise<AccountView> {
  const statement = await statementOf(database, organizationId, request.params["month"]);
  return {
    path: "/billing/payments",
    title: `Statement of ${monthOf(statement.month)}`,
    above: { path: "/billing/payments", label: "Payments" },
    body: html`<div class="pair">
${summary(statement)}
${creditTable(statement)}
</div>
${dayTable(statement)}`,
  };
}

/** @throws {CallerError} `not_found` for a month without a statement of the organization. */
async function statementOf(database: Database, organizationId: string, month: unknown): Promise<Statement> {
  const organization = await showOrganization(database, organizationId);
  const months = organization ? statementMonths(organization.createdAt, new Date()) : [];
  if (typeof month !== "string" || !months.includes(month)) throw new CallerError("not_found");
  return readStatement(database, organizationId, month);
}

function summary(statement: Statement): Html {
  const { month, openingMils, addedMils, chargedMils, reversedMils, closingMils, correctedMils } = statement;
  return html`<section aria-labelledby="summary-title">
<div class="head"><h2 id="summary-title">Summary</h2><a class="button" href="/billing/statements.csv?month=${month}">Download CSV</a></div>
<div class="scroll" tabindex="0" role="group" aria-labelledby="summary-title"><table class="history">
<tbody>
${line("Opening balance", openingMils)}
${line("Credit added", addedMils)}
${correctedMils !== 0 && line("Corrections by the operator", correctedMils)}
${line("Searches charged", -chargedMils)}
${line("Credited back", reversedMils)}
<tr><th scope="row">Closing balance</th><td class="number"><strong>${amount(closingMils)}</strong></td></tr>
</tbody>
</table></div>
<p class="aside">Days are in UTC. A search that was credited back in a later month appears in both months: charged in one, credited back in the other.</p>
</section>`;
}

const line = (label: string, mils: number) =>
  html`<tr><th scope="row">${label}</th><td class="number">${amount(mils)}</td></tr>`;

function creditTable({ credits, unlistedMils }: Statement): Html | false {
  if (credits.length === 0) return false;
  return html`<section aria-labelledby="credits-title">
<div class="head"><h2 id="credits-title">Credit</h2></div>
<div class="scroll" tabindex="0" role="group" aria-labelledby="credits-title"><table class="history stacked">
<thead><tr><th scope="col">When (UTC)</th><th scope="col">What</th><th scope="col" class="number">Amount</th></tr></thead>
<tbody>
${credits.map(
  ({ kind, at, note, id, mils }) => html`<tr>
<td class="when" data-label="When (UTC)">${timeElement(at)}</td>
<td data-label="What">${kind === "correction" && "Correction: "}${note} <code>${id}</code></td>
<td class="number" data-label="Amount">${amount(mils)}</td>
</tr>
`,
)}${unlistedMils !== 0 && html`<tr><td></td><td data-label="What">Other credit of the month</td><td class="number" data-label="Amount">${amount(unlistedMils)}</td></tr>`}</tbody>
</table></div>
</section>`;
}

function dayTable({ days }: Statement): Html {
  if (days.length === 0) return html`<p class="nothing">No entries in this month.</p>`;
  return html`<section aria-labelledby="days-title">
<div class="head"><h2 id="days-title">Searches by day</h2></div>
<div class="scroll" tabindex="0" role="group" aria-labelledby="days-title"><table class="history stacked">
<thead><tr><th scope="col">Day</th><th scope="col" class="number">Searches charged</th><th scope="col" class="number">Not charged</th><th scope="col" class="number">Charged</th><th scope="col" class="number">Credited back</th><th scope="col" class="number">Net</th></tr></thead>
<tbody>
${days.map(
  (day) => html`<tr>
<th scope="row"><time datetime="${day.day}">${dayOf(day.day)}</time></th>
<td class="number" data-label="Searches charged">${count(day.charges)}</td>
<td class="number" data-label="Not charged">${count(day.refunds)}</td>
<td class="number" data-label="Charged">${amount(day.chargedMils)}</td>
<td class="number" data-label="Credited back">${amount(day.reversedMils)}</td>
<td class="number" data-label="Net">${amount(day.chargedMils - day.reversedMils)}</td>
</tr>
`,
)}</tbody>
</table></div>
</section>`;
}

const columns = ["time_utc", "kind", "id", "note", "searches", "mils", "usd", "balance_mils"] as const;
const kinds = { grant: "credit_added", correction: "credit_corrected" };
type Row = Partial<Record<(typeof columns)[number], string | number>>;

/**
 * GET /billing/statements.csv?month=2026-03: the statement of a month. The first row has the opening balance, the last one the
 * closing balance; the amounts between them add up to the difference.
 */
export async function sendStatementCsv(
  { pages, database }: { pages: PageSender; database: Database },
  { request, response, caller: { organizationId } }: AccountRequest,
): Promise<void> {
  const statement = await statementOf(database, organizationId, request.query["month"]);
  // Escapes texts that a spreadsheet would run as formulas.
  const text = stringify([...rowsOf(statement)], { columns: [...columns], header: true, escape_formulas: true });
  pages.setHeaders(response);
  response.setHeader("Content-Type", "text/csv; charset=utf-8");
  response.setHeader("Content-Disposition", `attachment; filename="serpmill-statement-${statement.month}.csv"`);
  response.end(text);
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

/** An amount in mils and in dollars. They are numbers, because a text that begins with a minus would be escaped. */
const sumOf = (mils: number) => ({ mils, usd: mils / 1_000 });
