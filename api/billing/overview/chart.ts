import { dayOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/**
 * The bar of one day or hour. Below is what was charged and kept, above it what was not charged or was credited back. For durations,
 * below is the median, above it the rest of the 95th percentile.
 */
export interface Bar {
  /** The label under the axis: `12 Nov`, `14:00`. */
  label: string;
  kept: number;
  returned: number;
  /** The numbers in words. */
  summary: string;
}

/** A chart with its caption, legend, table and notes. */
export interface Drawing {
  caption: Html;
  bars: Bar[];
  /** Writes a value of the axis. */
  format: (value: number) => string;
  legend: Html;
  /** The head and the body of the table with the same numbers. */
  table: Html;
  /** Sentences about what the numbers leave out. */
  notes: string[];
}

/** A colour of the chart with its meaning. */
export const key = (kind: string, text: string) => html`<span class="key ${kind}">${text}</span> `;

/** `12 Nov` of a day, `14:00` of an hour. */
export const labelOf = (day: string) => (day.includes("T") ? day.slice(11, 16) : dayOf(day));

const axisStepsMax = 4;
/** Heights in pixels, and the room above the bars for the summary of one of them. */
const plotHeight = 210;
const emptyPlotHeight = 72;
const summaryHeight = 24;
const dateLabelsHeight = 18;
/** The share of a day's width that its bar takes. */
const barShare = 0.64;

/**
 * A bar chart as SVG. Positions are percentages, so that the chart is as wide as its container while its text keeps its size. The
 * style sheet shows the summary of the hovered or focused day above the chart.
 */
export function barChart(bars: readonly Bar[], options: { label: string; format: (value: number) => string }): Html {
  const highest = Math.max(...bars.map(({ kept, returned }) => kept + returned));
  const isEmpty = highest === 0;
  const tickValues = axisValues(highest, axisStepsMax);
  const top = tickValues.at(-1) || 1;
  const height = isEmpty ? emptyPlotHeight : plotHeight;
  return html`<svg class="chart${isEmpty && " empty"}" role="group" aria-label="${options.label}">
<svg class="plot" y="${summaryHeight}" height="${height}" width="100%">
${tickValues.map((tick) => {
  const y = percent(100 - (tick / top) * 100);
  return html`<line class="grid" x1="0" x2="100%" y1="${y}" y2="${y}"></line>
<text class="tick" x="-8" y="${y}" dy="4" text-anchor="end" aria-hidden="true">${options.format(tick)}</text>
`;
})}${bars.map((bar, index) => dayBar(bar, { index, days: bars.length, top }))}${isEmpty && html`<text class="tick" x="50%" y="55%" text-anchor="middle">No searches in this period</text>`}</svg>
${dateLabels(bars, summaryHeight + height + dateLabelsHeight)}</svg>`;
}

/** The values along an axis: multiples of 1, 2 or 5 times a power of ten, from 0 to the first one that is not below `highest`. */
export function axisValues(highest: number, stepsMax: number): number[] {
  const stepMin = Math.max(1, highest / stepsMax);
  const power = 10 ** Math.floor(Math.log10(stepMin));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= stepMin) ?? 10);
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, index) => index * step);
}

function dayBar(bar: Bar, { index, days, top }: { index: number; days: number; top: number }): Html {
  const dayWidth = 100 / days;
  const x = percent(dayWidth * (index + (1 - barShare) / 2));
  const width = percent(dayWidth * barShare);
  const kept = (bar.kept / top) * 100;
  const returned = (bar.returned / top) * 100;
  const rectangle = (kind: string, y: number, height: number) =>
    height > 0 &&
    html`<rect class="${kind}" x="${x}" width="${width}" y="${percent(y)}" height="${percent(height)}"></rect>`;
  // One day of each chart is in the tab order; account.js moves between the days with arrow keys.
  return html`<g class="day" role="img" aria-label="${bar.summary}" tabindex="${index === days - 1 ? 0 : -1}">
<rect class="hit" x="${percent(dayWidth * index)}" width="${percent(dayWidth)}" y="0" height="100%"></rect>
${rectangle("kept", 100 - kept, kept)}${rectangle("returned", 100 - kept - returned, returned)}
<text class="summary" x="100%" y="-10" aria-hidden="true">${bar.summary}</text>
</g>
`;
}

/** The first day, the one in the middle, and the last. */
function dateLabels(bars: readonly Bar[], y: number): Html {
  const labels = [
    { bar: bars[0], x: "0", anchor: "start" },
    { bar: bars[Math.floor((bars.length - 1) / 2)], x: "50%", anchor: "middle" },
    { bar: bars.at(-1), x: "100%", anchor: "end" },
  ];
  return html`${labels.map(
    ({ bar, x, anchor }) =>
      bar &&
      html`<text class="tick" x="${x}" y="${y}" text-anchor="${anchor}" aria-hidden="true">${bar.label}</text>
`,
  )}`;
}

const percent = (value: number) => `${Math.round(value * 1_000) / 1_000}%`;
