import { html, type Html } from "../../pages/html.ts";
import { barChart, type Drawing } from "./chart.ts";
import { drawDurations } from "./draw-durations.ts";
import { drawFigures } from "./draw-figures.ts";
import type { Chart } from "./read-chart.ts";
import {
  isReadOnce,
  type Measure,
  measureLabels,
  type Range,
  rangeLabels,
  type UsageView,
  usageViewQuery,
} from "./usage-view.ts";

/** The part of the usage that changes: a chart of the days or hours, links that switch what it shows, and the same numbers as a table. */
export function usageSection(chart: Chart, view: UsageView): Html {
  return html`<div id="usage">
<div class="head"><nav class="switch" aria-label="Shown">${keysOf(measureLabels).map((key) => link({ ...view, measure: key }, view, measureLabels[key]))}</nav>
<nav class="switch" aria-label="Range">${keysOf(rangeLabels).map((key) => link({ ...view, range: key }, view, rangeLabels[key]))}</nav></div>
${chart.kind === "no_log" ? noLog : figure(drawingOf(chart, view), view)}
</div>`;
}

const noLog = html`<p>The operator of this service keeps no search log, so how long searches took is not known.</p>`;

function drawingOf(chart: Exclude<Chart, { kind: "no_log" }>, { measure, range, tokenId }: UsageView): Drawing {
  const isHours = range === "24h";
  if (chart.kind === "durations") return drawDurations(chart, { isHours, now: new Date() });
  return drawFigures(chart, { measure, isHours, hasToken: tokenId !== undefined });
}

function figure({ caption, bars, format, legend, table, notes }: Drawing, view: UsageView): Html {
  const isHours = view.range === "24h";
  const allNotes = isReadOnce(view) ? [...notes, "This chart does not update by itself."] : notes;
  return html`<figure>
<figcaption>${caption}</figcaption>
${barChart(bars, { label: `${measureLabels[view.measure]} by ${isHours ? "hour" : "day"}`, format })}
</figure>
<p class="legend">${legend} <span>${isHours ? "Hours" : "Days"} are in UTC. ${allNotes.join(" ")}</span></p>
<details>
<summary>Show the numbers as a table</summary>
<div class="scroll" role="region" aria-label="Usage as a table" tabindex="0"><table>
${table}</table></div>
</details>`;
}

// Object.keys returns strings.
const keysOf = <Key extends Measure | Range>(labels: Record<Key, string>) => Object.keys(labels) as Key[];

function link(to: UsageView, view: UsageView, label: string): Html {
  const isCurrent = to.measure === view.measure && to.range === view.range;
  return html`<a href="/billing?${usageViewQuery(to)}#usage"${isCurrent && html` aria-current="true"`}>${label}</a>`;
}
