import { dayOf } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";

/** One day or hour of a chart. */
interface Period {
  /** The label under the axis: `12 Nov`, `14:00`. */
  label: string;
  /** The numbers in words. */
  summary: string;
}

/** A bar. Below is what was charged and kept, above it what was not charged or was credited back. */
export interface Bar extends Period {
  kept: number;
  returned: number;
}

/** A point of two lines; null where nothing was measured. */
export interface Point extends Period {
  median: number | null;
  p95: number | null;
}

/** A chart with its caption, legend, table and notes. */
export interface Drawing {
  caption: Html;
  chart: (label: string) => Html;
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

interface ChartOptions {
  label: string;
  /** Writes a value of the axis. */
  format: (value: number) => string;
}

/** A bar chart as SVG. */
export function barChart(bars: readonly Bar[], options: ChartOptions): Html {
  const highest = Math.max(...bars.map(({ kept, returned }) => kept + returned));
  return chartOf(bars, { ...options, highest }, { behind: () => "", mark: rectangles });
}

/** A chart of two lines as SVG. */
export function lineChart(points: readonly Point[], options: ChartOptions): Html {
  const highest = Math.max(...points.map(({ median, p95 }) => Math.max(median ?? 0, p95 ?? 0)));
  return chartOf(points, { ...options, highest }, { behind: lines, mark: dots });
}

/** Where a mark is: its day among the days, and the value at the top of the plot. */
interface Place {
  index: number;
  days: number;
  top: number;
}

/** What a kind of chart draws for the whole plot, behind the days, and for one day. */
interface Marks<P extends Period> {
  behind: (periods: readonly P[], top: number) => Html | string;
  mark: (period: P, place: Place, periods: readonly P[]) => Html;
}

/**
 * A chart with its axes. Positions are percentages, so that the chart is as wide as its container while its text keeps its size. The
 * style sheet shows the summary of the hovered or focused day above the chart.
 */
function chartOf<P extends Period>(
  periods: readonly P[],
  options: ChartOptions & { highest: number },
  { behind, mark }: Marks<P>,
): Html {
  const { highest } = options;
  const isEmpty = highest === 0;
  const tickValues = axisValues(highest, axisStepsMax);
  const top = tickValues.at(-1) || 1;
  const height = isEmpty ? emptyPlotHeight : plotHeight;
  return html`<svg class="chart${isEmpty && " empty"}" role="group" aria-label="${options.label}">
<svg class="plot" y="${summaryHeight}" height="${height}" width="100%">
${tickValues.map((tick) => {
  const y = percent(100 - (tick / top) * 100);
  return html`<line class="grid" x1="0" x2="100%" y1="${y}" y2="${y}"></line>
<text x="-8" y="${y}" dy="4" text-anchor="end" aria-hidden="true">${options.format(tick)}</text>
`;
})}${behind(periods, top)}${periods.map((period, index) => {
  const place = { index, days: periods.length, top };
  return dayArea(period, place, mark(period, place, periods));
})}${isEmpty && html`<text x="50%" y="55%" text-anchor="middle">No searches in this period</text>`}</svg>
${dateLabels(periods, summaryHeight + height + dateLabelsHeight)}</svg>`;
}

/** The values along an axis: multiples of 1, 2 or 5 times a power of ten, from 0 to the first one that is not below `highest`. */
export function axisValues(highest: number, stepsMax: number): number[] {
  const stepMin = Math.max(1, highest / stepsMax);
  const power = 10 ** Math.floor(Math.log10(stepMin));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= stepMin) ?? 10);
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, index) => index * step);
}

/** The mark of one day, with the area that a pointer or the keyboard reaches, and its summary. */
function dayArea({ summary }: Period, { index, days }: Place, mark: Html): Html {
  const dayWidth = 100 / days;
  // One day of each chart is in the tab order; account.js moves between the days with arrow keys.
  return html`<g class="day" role="img" aria-label="${summary}" tabindex="${index === days - 1 ? 0 : -1}">
<rect class="hit" x="${percent(dayWidth * index)}" width="${percent(dayWidth)}" height="100%"/>
${mark}
<text class="summary" x="100%" y="-10" aria-hidden="true">${summary}</text>
</g>
`;
}

function rectangles(bar: Bar, { index, days, top }: Place): Html {
  const dayWidth = 100 / days;
  const x = percent(dayWidth * (index + (1 - barShare) / 2));
  const width = percent(dayWidth * barShare);
  const kept = (bar.kept / top) * 100;
  const returned = (bar.returned / top) * 100;
  const rectangle = (kind: string, y: number, height: number) =>
    height > 0 && html`<rect class="${kind}" x="${x}" width="${width}" y="${percent(y)}" height="${percent(height)}"/>`;
  return html`${rectangle("kept", 100 - kept, kept)}${rectangle("returned", 100 - kept - returned, returned)}`;
}

// The median last: it is drawn above the other where both are equal.
const lineNames = ["p95", "median"] as const;
const middleOf = (index: number, days: number) => rounded((100 / days) * (index + 0.5));

/** Both lines, with a gap where nothing was measured. The box is stretched to the plot, and the style sheet keeps its strokes even. */
function lines(points: readonly Point[], top: number): Html {
  const path = (name: (typeof lineNames)[number]) =>
    points
      .map((point, index) => {
        const value = point[name];
        if (value === null) return "";
        const isFirst = (points[index - 1]?.[name] ?? null) === null;
        return `${isFirst ? "M" : "L"}${middleOf(index, points.length)} ${rounded(100 - (value / top) * 100)}`;
      })
      .join("");
  return html`<svg width="100%" height="100%" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
${lineNames.map((name) => html`<path class="line ${name}" d="${path(name)}"></path>`)}</svg>`;
}

/** The points of a day, which show while it is hovered or focused, and always if no line reaches them. */
function dots(point: Point, { index, days, top }: Place, points: readonly Point[]): Html {
  const isAlone = [points[index - 1], points[index + 1]].every((beside) => (beside?.median ?? null) === null);
  return html`${lineNames.map((name) => {
    const value = point[name];
    return (
      value !== null &&
      html`<circle class="${name}${isAlone && " alone"}" cx="${middleOf(index, days)}%" cy="${percent(100 - (value / top) * 100)}" r="4"/>`
    );
  })}`;
}

/** The first day, the one in the middle, and the last. */
function dateLabels(periods: readonly Period[], y: number): Html {
  const labels = [
    { period: periods[0], x: "0", anchor: "start" },
    { period: periods[Math.floor((periods.length - 1) / 2)], x: "50%", anchor: "middle" },
    { period: periods.at(-1), x: "100%", anchor: "end" },
  ];
  return html`${labels.map(
    ({ period, x, anchor }) =>
      period &&
      html`<text x="${x}" y="${y}" text-anchor="${anchor}" aria-hidden="true">${period.label}</text>
`,
  )}`;
}

// A hundredth of a percent is less than a tenth of a pixel, and a chart has some hundred marks.
const rounded = (value: number) => Math.round(value * 100) / 100;
const percent = (value: number) => `${rounded(value)}%`;
