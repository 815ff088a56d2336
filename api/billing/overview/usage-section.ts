import type { DayFigures } from "../../../shared/credits/days.ts";
import { amount, count, dayOf, dollars, searches } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { type Bar, barChart } from "./chart.ts";
import { type Measure, measureLabels, type Range, rangeLabels, type UsageView, usageViewQuery } from "./usage-view.ts";

/** One chart of the days or hours, links that switch what it shows, and the same numbers as a table. */
export function usageSection(figures: readonly DayFigures[], view: UsageView): Html {
  const { measure, range } = view;
  const isHours = range === "24h";
  return html`<section id="usage" class="panel" aria-labelledby="usage-title">
<div class="head"><h2 id="usage-title">Usage</h2>
<nav class="switch" aria-label="Shown">${keysOf(measureLabels).map((key) => link({ measure: key, range }, view, measureLabels[key]))}</nav>
<nav class="switch" aria-label="Range">${keysOf(rangeLabels).map((key) => link({ measure, range: key }, view, rangeLabels[key]))}</nav></div>
<figure>
<figcaption>${caption(figures, measure)}</figcaption>
${barChart(
  figures.map((period) => barOf(period, measure)),
  {
    label: `${measureLabels[measure]} by ${isHours ? "hour" : "day"}`,
    format: measure === "dollars" ? dollars : count,
  },
)}
</figure>
<p class="legend">${legends[measure]}. ${isHours ? "Hours" : "Days"} are in UTC.</p>
<details>
<summary>Show the numbers as a table</summary>
${table(figures, isHours)}
</details>
</section>`;
}

// Object.keys returns strings.
const keysOf = <Key extends Measure | Range>(labels: Record<Key, string>) => Object.keys(labels) as Key[];

function link(to: UsageView, view: UsageView, label: string): Html {
  const isCurrent = to.measure === view.measure && to.range === view.range;
  return html`<a href="/billing?${usageViewQuery(to)}#usage"${isCurrent && html` aria-current="true"`}>${label}</a>`;
}

const key = (kind: string, text: string) => html`<span class="key ${kind}"></span>${text}`;
const legends: Record<Measure, Html> = {
  searches: html`${key("kept", "charged")}${key("returned", "not charged")}`,
  dollars: html`${key("kept", "charged")}${key("returned", "credited back later")}`,
  uncharged: html`${key("returned", "searches that were not charged, or were credited back later")}`,
};

function caption(figures: readonly DayFigures[], measure: Measure): Html {
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

function barOf(period: DayFigures, measure: Measure): Bar {
  const label = labelOf(period);
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

/** `12 Nov`, or for an hour `14:00`. */
const labelOf = ({ day }: DayFigures) => (day.includes("T") ? day.slice(11, 16) : dayOf(day));

function table(figures: readonly DayFigures[], isHours: boolean): Html {
  return html`<div class="scroll" role="region" aria-label="Usage as a table" tabindex="0"><table>
<thead><tr><th scope="col">${isHours ? "Hour" : "Day"} (UTC)</th><th scope="col" class="number">Searches</th><th scope="col" class="number">Not charged</th><th scope="col" class="number">Charged</th><th scope="col" class="number">Credited back later</th><th scope="col" class="number">Net</th><th scope="col" class="number">Added</th></tr></thead>
<tbody>
${figures.toReversed().map(
  (period) =>
    html`<tr><th scope="row"><time datetime="${period.day}">${labelOf(period)}</time></th><td class="number">${count(period.charges + period.refunds)}</td><td class="number">${count(period.refunds)}</td><td class="number">${amount(period.chargedMils)}</td><td class="number">${amount(period.reversedMils)}</td><td class="number">${amount(period.chargedMils - period.reversedMils)}</td><td class="number">${amount(period.grantedMils + period.correctedMils)}</td></tr>
`,
)}</tbody>
</table></div>`;
}
