import type { DayFigures } from "../../../shared/credits/days.ts";
import { type Bar, barChart } from "./chart.ts";
import { count, dayOf, dollars, mils, searches } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/** Thirty days of searches and what they cost: two charts, and the same numbers as a table. */
export function usageSection(days: readonly DayFigures[]): Html {
  const total = {
    searches: sum(days, (day) => day.charges + day.refunds),
    refunds: sum(days, (day) => day.refunds),
    chargedMils: sum(days, (day) => day.chargedMils),
    reversedMils: sum(days, (day) => day.reversedMils),
  };
  return html`<section id="usage" aria-labelledby="usage-title">
<div class="head"><h2 id="usage-title">Last ${days.length} days</h2><p class="aside">Days start at midnight UTC</p></div>
<div class="charts">
${panel({
  title: "Searches",
  figure: count(total.searches),
  aside: `${count(total.refunds)} not charged`,
  chart: barChart(days.map(searchBar), { label: "Searches per day", format: count }),
})}
${panel({
  title: "Charged",
  figure: dollars(total.chargedMils),
  aside: `${mils(total.chargedMils)}${total.reversedMils > 0 ? `, ${count(total.reversedMils)} credited back later` : ""}`,
  chart: barChart(days.map(milsBar), { label: "Mils charged per day", format: dollars }),
})}
</div>
<p class="legend"><span class="key kept"></span>charged <span class="key returned"></span>not charged, or credited back later</p>
<details>
<summary>Show the days as a table</summary>
${daysTable(days)}
</details>
</section>`;
}

/** Corrections may take more away than was added. */
const signed = (added: number) => `${added < 0 ? "−" : ""}${count(Math.abs(added))}`;

const sum = (days: readonly DayFigures[], of: (day: DayFigures) => number) =>
  days.reduce((total, day) => total + of(day), 0);

function searchBar(day: DayFigures): Bar {
  const summary = `${dayOf(day.day)}: ${searches(day.charges + day.refunds)}, ${count(day.refunds)} not charged`;
  return { day: day.day, kept: day.charges, returned: day.refunds, summary };
}

function milsBar(day: DayFigures): Bar {
  const reversed = day.reversedMils > 0 ? `, ${count(day.reversedMils)} credited back` : "";
  const summary = `${dayOf(day.day)}: ${mils(day.chargedMils)} charged${reversed}`;
  // A charge of yesterday may be reversed today. The bar still shows no more than the day charged.
  const returned = Math.min(day.reversedMils, day.chargedMils);
  return { day: day.day, kept: day.chargedMils - returned, returned, summary };
}

function panel({ title, figure, aside, chart }: { title: string; figure: string; aside: string; chart: Html }): Html {
  return html`<figure class="panel">
<figcaption><span class="name">${title}</span> <strong>${figure}</strong> <span class="aside">${aside}</span></figcaption>
${chart}
</figure>`;
}

function daysTable(days: readonly DayFigures[]): Html {
  return html`<div class="scroll" role="region" aria-label="Days as a table" tabindex="0"><table>
<thead><tr><th scope="col">Day (UTC)</th><th scope="col" class="number">Searches</th><th scope="col" class="number">Not charged</th><th scope="col" class="number">Mils charged</th><th scope="col" class="number">Mils credited back later</th><th scope="col" class="number">Mils added</th></tr></thead>
<tbody>
${days.toReversed().map(
  (day) =>
    html`<tr><th scope="row"><time datetime="${day.day}">${dayOf(day.day)}</time></th><td class="number">${count(day.charges + day.refunds)}</td><td class="number">${count(day.refunds)}</td><td class="number">${count(day.chargedMils)}</td><td class="number">${count(day.reversedMils)}</td><td class="number">${signed(day.grantedMils + day.correctedMils)}</td></tr>
`,
)}</tbody>
</table></div>`;
}
