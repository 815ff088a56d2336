import type { DayFigures } from "../../../shared/credits/days.ts";
import { count, dayOf, dollars, mils, searches } from "./format.ts";
import { type Bar, barChart } from "./chart.ts";
import { html, type Html } from "./html.ts";

/** Thirty days: searches and what they cost, as two charts, and the same as a table. */
export function usageSection(days: readonly DayFigures[]): Html {
  const whole = {
    searches: sum(days, (day) => day.charges + day.refunds),
    refunds: sum(days, (day) => day.refunds),
    charged: sum(days, (day) => day.chargedMils),
    reversed: sum(days, (day) => day.reversedMils),
  };
  return html`<section id="usage" aria-labelledby="usage-title">
<div class="head"><h2 id="usage-title">Last ${days.length} days</h2><p class="aside">Days begin at midnight UTC</p></div>
<div class="charts">
${panel({
  title: "Searches",
  figure: count(whole.searches),
  aside: `${count(whole.refunds)} not charged`,
  chart: barChart(days.map(searchBar), { label: "Searches per day", tell: count }),
})}
${panel({
  title: "Charged",
  figure: dollars(whole.charged),
  aside: `${mils(whole.charged)}${whole.reversed > 0 ? `, ${count(whole.reversed)} given back later` : ""}`,
  chart: barChart(days.map(milsBar), { label: "Mils charged per day", tell: (value) => dollars(value) }),
})}
</div>
<p class="legend"><span class="key kept"></span>charged <span class="key returned"></span>not charged, or given back later</p>
<details>
<summary>Show the days as a table</summary>
${daysTable(days)}
</details>
</section>`;
}

const sum = (days: readonly DayFigures[], of: (day: DayFigures) => number) =>
  days.reduce((total, day) => total + of(day), 0);

function searchBar(day: DayFigures): Bar {
  const says = `${dayOf(day.day)}: ${searches(day.charges + day.refunds)}, ${count(day.refunds)} not charged`;
  return { day: day.day, kept: day.charges, returned: day.refunds, says };
}

function milsBar(day: DayFigures): Bar {
  const given = day.reversedMils > 0 ? `, ${count(day.reversedMils)} given back` : "";
  const says = `${dayOf(day.day)}: ${mils(day.chargedMils)} charged${given}`;
  // What is given back today may have been charged yesterday; a bar is never higher than what the day charged.
  const returned = Math.min(day.reversedMils, day.chargedMils);
  return { day: day.day, kept: day.chargedMils - returned, returned, says };
}

function panel({ title, figure, aside, chart }: { title: string; figure: string; aside: string; chart: Html }): Html {
  return html`<figure class="panel">
<figcaption><span class="name">${title}</span> <strong>${figure}</strong> <span class="aside">${aside}</span></figcaption>
${chart}
</figure>`;
}

function daysTable(days: readonly DayFigures[]): Html {
  return html`<div class="scroll" role="region" aria-label="Days as a table" tabindex="0"><table>
<thead><tr><th scope="col">Day (UTC)</th><th scope="col" class="number">Searches</th><th scope="col" class="number">Not charged</th><th scope="col" class="number">Mils charged</th><th scope="col" class="number">Mils given back later</th><th scope="col" class="number">Mils added</th></tr></thead>
<tbody>
${days.toReversed().map(
  (day) =>
    html`<tr><th scope="row"><time datetime="${day.day}">${dayOf(day.day)}</time></th><td class="number">${count(day.charges + day.refunds)}</td><td class="number">${count(day.refunds)}</td><td class="number">${count(day.chargedMils)}</td><td class="number">${count(day.reversedMils)}</td><td class="number">${count(day.grantedMils)}</td></tr>
`,
)}</tbody>
</table></div>`;
}
