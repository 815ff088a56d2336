import type { Request } from "express";
import { z } from "zod";
import type { Database } from "../../../shared/database/pool.ts";
import { CallerError } from "../../../shared/errors.ts";
import { tokenId as tokenIdSchema } from "../../../shared/ids.ts";
import { type DayFigures, type LedgerDay, withoutPlace } from "../../../shared/credits/ledger-days.ts";
import { type DurationFigures, type Durations, readDurations } from "../../ledger/durations.ts";
import { entriesMax, readTokenDays, type TokenDays } from "../../ledger/token-days.ts";
import { type Bar, barChart, type Drawing, key, labelOf, lineChart, type Point } from "./chart.ts";
import { duration, type FindableToken, tokenOptions } from "../searches/history.ts";
import { amount, count, dateOf, dollars, plural, searches, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/** What the chart of the overview shows. */

const measures = ["searches", "dollars", "latency", "uncharged"] as const;
type Measure = (typeof measures)[number];
type FiguresMeasure = Exclude<Measure, "latency">;
const ranges = ["24h", "7d", "30d", "90d", "month"] as const;
type Range = (typeof ranges)[number];

export interface UsageView {
  measure: Measure;
  range: Range;
  /** Only searches with this token; undefined for all searches. */
  tokenId: string | undefined;
}

const measureLabels: Record<Measure, string> = {
  searches: "Searches",
  dollars: "Dollars",
  latency: "Latency",
  uncharged: "Not charged",
};
const rangeLabels: Record<Range, string> = {
  "24h": "24 hours",
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
  month: "This month",
};

type Unit = "day" | "hour";
const unitOf = (range: Range): Unit => (range === "24h" ? "hour" : "day");
const unitLabels: Record<Unit, string> = { day: "Day", hour: "Hour" };

const viewQuery = z.object({
  measure: z.enum(measures).default("searches"),
  range: z.enum(ranges).default("30d"),
  token: z.union([tokenIdSchema, z.literal("").transform(() => undefined)]).optional(),
});

/** Reads the view from a request's query. @throws {CallerError} `not_found` for a view that does not exist. */
export function readUsageView(request: Request): UsageView {
  const parsed = viewQuery.safeParse(request.query);
  if (!parsed.success) throw new CallerError("not_found");
  const { measure, range, token: tokenId } = parsed.data;
  return { measure, range, tokenId };
}

/** The query that {@link readUsageView} reads back. */
export const usageViewQuery = ({ measure, range, tokenId }: UsageView) =>
  new URLSearchParams({ measure, range, ...(tokenId !== undefined && { token: tokenId }) }).toString();

/** Whether the chart is read only when the page opens: reading it again after each search would cost more than the searches. */
export const isReadOnce = ({ measure, tokenId }: UsageView) => measure === "latency" || tokenId !== undefined;

/** The last days or hours of a range, with the current one, at this time in UTC. */
export function periodsOf({ range }: Pick<UsageView, "range">, now: Date): { unit: Unit; length: number } {
  return { unit: unitOf(range), length: range === "month" ? now.getUTCDate() : Number.parseInt(range, 10) };
}

/** The data of the chart: figures of all searches or of one token, durations, or nothing without a search log. */
export type Chart =
  | { kind: "figures"; measure: FiguresMeasure; figures: DayFigures[]; token?: Omit<TokenDays, "figures"> }
  | ({ kind: "durations"; keptDays: number } & Durations)
  | { kind: "no_log" };

/** Reads the chart of a view. @param days the days or hours of its range. @param keptDays the days of the search log; 0 for none. */
export async function readChart(
  database: Database,
  organizationId: string,
  { view, days, keptDays }: { view: UsageView; days: readonly LedgerDay[]; keptDays: number },
): Promise<Chart> {
  const { measure, tokenId } = view;
  if (measure === "latency") {
    if (keptDays === 0) return { kind: "no_log" };
    return { kind: "durations", keptDays, ...(await readDurations(database, organizationId, { days, tokenId })) };
  }
  if (tokenId === undefined) return { kind: "figures", measure, figures: days.map(withoutPlace) };
  const { figures, ...token } = await readTokenDays(database, organizationId, tokenId, days);
  return { kind: "figures", measure, figures, token };
}

/** The section that live updates replace: links that switch the chart, the chart, and its numbers as a table. */
export function usageSection(chart: Chart, view: UsageView): Html {
  return html`<div id="usage">
<div class="head"><nav class="switch" aria-label="Shown">${measures.map((measure) => link({ ...view, measure }, view, measureLabels[measure]))}</nav>
<nav class="switch" aria-label="Range">${ranges.map((range) => link({ ...view, range }, view, rangeLabels[range]))}</nav></div>
${chart.kind === "no_log" ? noLog : figure(drawingOf(chart, view.range), view)}
</div>`;
}

const noLog = html`<p>The operator of this service keeps no search log, so durations are not available.</p>`;

function drawingOf(chart: Exclude<Chart, { kind: "no_log" }>, range: Range): Drawing {
  if (chart.kind === "durations") return drawDurations(chart, { range, now: new Date() });
  return drawFigures(chart, unitOf(range));
}

function figure({ caption, chart, legend, table, notes }: Drawing, view: UsageView): Html {
  const unit = unitOf(view.range);
  const allNotes = isReadOnce(view) ? [...notes, "This chart does not update automatically."] : notes;
  return html`<figure>
<figcaption>${caption}</figcaption>
${chart(`${measureLabels[view.measure]} by ${unit}`)}
</figure>
<p class="legend">${legend} <span>${unitLabels[unit]}s are in UTC. ${allNotes.join(" ")}</span></p>
<details>
<summary>Show the numbers as a table</summary>
<div class="scroll" role="region" aria-label="Usage as a table" tabindex="0"><table class="numbers">
${table}</table></div>
</details>`;
}

function link(to: UsageView, view: UsageView, label: string): Html {
  const isCurrent = to.measure === view.measure && to.range === view.range;
  return html`<a href="/billing?${usageViewQuery(to)}#usage"${isCurrent && html` aria-current="true"`}>${label}</a>`;
}

/** The form that limits the chart to one token, if there are several. It is outside the live section, so that no choice is lost. */
export function usageForm({ measure, range, tokenId }: UsageView, tokens: readonly FindableToken[]): Html | false {
  if (tokens.length < 2 && tokenId === undefined) return false;
  return html`<form class="of-token" action="/billing#usage">
<input type="hidden" name="measure" value="${measure}"><input type="hidden" name="range" value="${range}">
<label class="aside">Usage of <select name="token"><option value="">All tokens</option>${tokenOptions(tokens, tokenId)}</select></label>
<button class="plain">Show</button>
</form>`;
}

/** Draws searches, dollars, or searches that were not charged. */
function drawFigures({ measure, figures, token }: Extract<Chart, { kind: "figures" }>, unit: Unit): Drawing {
  const bars = figures.map((period) => figuresBar(period, measure));
  return {
    caption: figuresCaption(figures, measure),
    chart: (label) => barChart(bars, { label, format: measure === "dollars" ? dollars : count }),
    legend: legends[measure],
    table: figuresTable(figures, unit, token !== undefined),
    notes: token ? figuresNotes(token) : [],
  };
}

function figuresNotes({ countedSince, hasTokenless }: Omit<TokenDays, "figures">): string[] {
  const notes = [];
  if (countedSince)
    notes.push(
      `Only the newest ${count(entriesMax)} history entries are counted: those since ${dateOf(countedSince)}, ${timeOf(countedSince)}.`,
    );
  if (hasTokenless)
    notes.push("Some uncharged searches in this period have no token on record, so they appear in no token's chart.");
  return notes;
}

const legends: Record<FiguresMeasure, Html> = {
  searches: html`${key("kept", "charged")}${key("returned", "not charged")}`,
  dollars: html`${key("kept", "charged")}${key("returned", "credited back later")}`,
  uncharged: html`${key("returned", "searches that were not charged, or were credited back later")}`,
};

function figuresCaption(figures: readonly DayFigures[], measure: FiguresMeasure): Html {
  const sum = (of: (period: DayFigures) => number) => figures.reduce((total, period) => total + of(period), 0);
  const [charges, refunds] = [sum((period) => period.charges), sum((period) => period.refunds)];
  const [chargedMils, reversedMils] = [sum((period) => period.chargedMils), sum((period) => period.reversedMils)];
  if (measure === "dollars")
    return html`<strong>${amount(chargedMils - reversedMils)}</strong> <span class="aside">net${reversedMils > 0 && html`: ${amount(chargedMils)} charged, ${amount(reversedMils)} credited back`}</span>`;
  if (measure === "searches")
    return html`<strong>${count(charges + refunds)}</strong> <span class="aside">${count(refunds)} not charged</span>`;
  const uncharged = refunds + sum((period) => period.reversals);
  const share = Math.round((uncharged / Math.max(1, charges + refunds)) * 1_000) / 10;
  return html`<strong>${count(uncharged)}</strong> <span class="aside">${share} % of ${searches(charges + refunds)}</span>`;
}

function figuresBar(period: DayFigures, measure: FiguresMeasure): Bar {
  const label = labelOf(period.day);
  const { charges, refunds, reversals, chargedMils, reversedMils } = period;
  if (measure === "searches") {
    const summary = `${label}: ${searches(charges + refunds)}, ${count(refunds)} not charged`;
    return { label, kept: charges, returned: refunds, summary };
  }
  if (measure === "uncharged") {
    const summary = `${label}: ${count(refunds)} not charged, ${count(reversals)} credited back`;
    return { label, kept: 0, returned: refunds + reversals, summary };
  }
  const reversed = reversedMils > 0 ? `, ${dollars(reversedMils)} credited back` : "";
  // A reversal may belong to a charge of an earlier day. The bar never exceeds the day's own charges.
  const returned = Math.min(reversedMils, chargedMils);
  return {
    label,
    kept: chargedMils - returned,
    returned,
    summary: `${label}: ${dollars(chargedMils)} charged${reversed}`,
  };
}

function figuresTable(figures: readonly DayFigures[], unit: Unit, hasToken: boolean): Html {
  return html`<thead><tr><th scope="col">${unitLabels[unit]} (UTC)</th><th scope="col">Searches</th><th scope="col">Not charged</th><th scope="col">Charged</th><th scope="col">Credited back later</th><th scope="col">Net</th>${!hasToken && html`<th scope="col">Added</th>`}</tr></thead>
<tbody>
${figures.toReversed().map(
  (period) =>
    // Plain texts: with a tooltip for each amount, 90 days would weigh twice as much.
    html`<tr><th scope="row">${labelOf(period.day)}</th><td>${count(period.charges + period.refunds)}</td><td>${count(period.refunds)}</td><td>${dollars(period.chargedMils)}</td><td>${dollars(period.reversedMils)}</td><td>${dollars(period.chargedMils - period.reversedMils)}</td>${!hasToken && html`<td>${dollars(period.grantedMils + period.correctedMils)}</td>`}</tr>
`,
)}</tbody>`;
}

const dayMs = 86_400_000;

function drawDurations(
  chart: Extract<Chart, { kind: "durations" }>,
  { range, now }: { range: Range; now: Date },
): Drawing {
  const { periods, whole } = chart;
  const unit = unitOf(range);
  return {
    caption: durationsCaption(whole, range),
    chart: (label) => lineChart(periods.map(durationsPoint), { label, format: duration }),
    legend: html`${key("median", "median")}${key("p95", "95th percentile")}`,
    table: durationsTable(periods, unit),
    notes: durationsNotes(chart, unit, now),
  };
}

function durationsCaption({ medianMs, p95Ms }: Durations["whole"], range: Range): Html {
  if (medianMs === null || p95Ms === null)
    return html`<strong>–</strong> <span class="aside">no searches measured</span>`;
  const when = range === "month" ? "this month" : `the last ${rangeLabels[range]}`;
  return html`<strong>${duration(medianMs)}</strong> <span class="aside">median of ${when}; 95 % took ${duration(p95Ms)} or less</span>`;
}

function durationsPoint({ day, measured, medianMs: median, p95Ms: p95 }: DurationFigures): Point {
  const label = labelOf(day);
  const summary =
    median === null || p95 === null
      ? `${label}: no searches measured`
      : `${label}: median ${duration(median)}, 95th percentile ${duration(p95)}, of ${searches(measured)}`;
  return { label, median, p95, summary };
}

function durationsTable(periods: readonly DurationFigures[], unit: Unit): Html {
  const cell = (ms: number | null) => html`<td>${ms === null ? "–" : duration(ms)}</td>`;
  return html`<thead><tr><th scope="col">${unitLabels[unit]} (UTC)</th><th scope="col">Searches measured</th><th scope="col">Median</th><th scope="col">95th percentile</th></tr></thead>
<tbody>
${periods.toReversed().map(
  ({ day, measured, medianMs, p95Ms }) =>
    html`<tr><th scope="row">${labelOf(day)}</th><td>${count(measured)}</td>${cell(medianMs)}${cell(p95Ms)}</tr>
`,
)}</tbody>`;
}

function durationsNotes(chart: Extract<Chart, { kind: "durations" }>, unit: Unit, now: Date): string[] {
  const { periods, keptDays, samplesMax, isSampled } = chart;
  const notes = [];
  // The log deletes a day once all of it is older.
  const keptSinceMs = now.getTime() - (now.getTime() % dayMs) - keptDays * dayMs;
  if (Date.parse(periods[0]?.day ?? "") < keptSinceMs)
    notes.push(`Durations older than ${plural(keptDays, "day")} are deleted.`);
  if (isSampled)
    notes.push(`For each ${unit} with more than ${searches(samplesMax)}, a sample of about that size was measured.`);
  return notes;
}
