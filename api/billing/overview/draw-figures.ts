import type { DayFigures } from "../../../shared/credits/days.ts";
import { entriesMax } from "../../../shared/credits/token-days.ts";
import { amount, count, dateOf, dollars, searches, timeOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { type Bar, type Drawing, key, labelOf, tokenlessNote } from "./chart.ts";
import type { Chart } from "./read-chart.ts";
import type { Measure } from "./usage-view.ts";

type FiguresMeasure = Exclude<Measure, "latency">;

/** Draws searches, dollars, or searches that were not charged. */
export function drawFigures(
  chart: Extract<Chart, { figures: DayFigures[] }>,
  { measure, isHours, hasToken }: { measure: Measure; isHours: boolean; hasToken: boolean },
): Drawing {
  const shown = measure === "latency" ? "searches" : measure;
  const { figures } = chart;
  return {
    caption: caption(figures, shown),
    bars: figures.map((period) => barOf(period, shown)),
    format: shown === "dollars" ? dollars : count,
    legend: legends[shown],
    table: table(figures, { isHours, hasToken }),
    notes: chart.kind === "token" ? notesOf(chart) : [],
  };
}

function notesOf({ countedSince, hasTokenless }: Extract<Chart, { kind: "token" }>): string[] {
  const notes = [];
  if (countedSince)
    notes.push(
      `Only the newest ${count(entriesMax)} entries of the history were counted: those since ${dateOf(countedSince)}, ${timeOf(countedSince)}.`,
    );
  if (hasTokenless) notes.push(tokenlessNote);
  return notes;
}

const legends: Record<FiguresMeasure, Html> = {
  searches: html`${key("kept", "charged")}${key("returned", "not charged")}`,
  dollars: html`${key("kept", "charged")}${key("returned", "credited back later")}`,
  uncharged: html`${key("returned", "searches that were not charged, or were credited back later")}`,
};

function caption(figures: readonly DayFigures[], measure: FiguresMeasure): Html {
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

function barOf(period: DayFigures, measure: FiguresMeasure): Bar {
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
  // A charge of yesterday may be reversed today. The bar still shows no more than the day charged.
  const returned = Math.min(reversedMils, chargedMils);
  return {
    label,
    kept: chargedMils - returned,
    returned,
    summary: `${label}: ${dollars(chargedMils)} charged${reversed}`,
  };
}

function table(figures: readonly DayFigures[], { isHours, hasToken }: { isHours: boolean; hasToken: boolean }): Html {
  return html`<thead><tr><th scope="col">${isHours ? "Hour" : "Day"} (UTC)</th><th scope="col" class="number">Searches</th><th scope="col" class="number">Not charged</th><th scope="col" class="number">Charged</th><th scope="col" class="number">Credited back later</th><th scope="col" class="number">Net</th>${!hasToken && html`<th scope="col" class="number">Added</th>`}</tr></thead>
<tbody>
${figures.toReversed().map(
  (period) =>
    html`<tr><th scope="row"><time datetime="${period.day}">${labelOf(period.day)}</time></th><td class="number">${count(period.charges + period.refunds)}</td><td class="number">${count(period.refunds)}</td><td class="number">${amount(period.chargedMils)}</td><td class="number">${amount(period.reversedMils)}</td><td class="number">${amount(period.chargedMils - period.reversedMils)}</td>${!hasToken && html`<td class="number">${amount(period.grantedMils + period.correctedMils)}</td>`}</tr>
`,
)}</tbody>`;
}
