import { nice, ticks } from "d3-array";
import { dayOf } from "./format.ts";
import { html, type Html } from "./html.ts";

/** One day's bar: what stands, and on top of it what was not taken or was given back. */
export interface Bar {
  /** As in `2026-03-01`. */
  day: string;
  kept: number;
  returned: number;
  /** The day's numbers in words. */
  says: string;
}

const ticksWanted = 3;
/** How much of a day's width its bar takes. */
const barShare = 0.64;

/**
 * Bars of equal days as SVG. Places are in per cent, so it is as wide as its room while its texts keep their size. The
 * numbers of the day under the pointer, or of the one that has the focus, stand above (the style sheet shows them).
 */
export function barChart(bars: readonly Bar[], options: { label: string; tell: (value: number) => string }): Html {
  const highest = Math.max(...bars.map(({ kept, returned }) => kept + returned));
  const [, top] = nice(0, Math.max(1, highest), ticksWanted);
  const lines = highest === 0 ? [0] : ticks(0, top, ticksWanted).filter((tick) => Number.isInteger(tick));
  return html`<svg class="chart" role="group" aria-label="${options.label}">
<svg class="plot" y="24" height="140" width="100%">
${lines.map((tick) => {
  const y = percent(100 - (tick / top) * 100);
  return html`<line class="grid" x1="0" x2="100%" y1="${y}" y2="${y}"></line>
<text class="tick" x="-8" y="${y}" dy="4" text-anchor="end" aria-hidden="true">${options.tell(tick)}</text>
`;
})}${bars.map((bar, at) => oneDay(bar, { at, days: bars.length, top }))}${highest === 0 && html`<text class="tick" x="50%" y="55%" text-anchor="middle">Nothing yet</text>`}</svg>
${dates(bars)}</svg>`;
}

function oneDay(bar: Bar, { at, days, top }: { at: number; days: number; top: number }): Html {
  const room = 100 / days;
  const x = percent(room * (at + (1 - barShare) / 2));
  const width = percent(room * barShare);
  const kept = (bar.kept / top) * 100;
  const returned = (bar.returned / top) * 100;
  const rectangle = (kind: string, y: number, height: number) =>
    height > 0 &&
    html`<rect class="${kind}" x="${x}" width="${width}" y="${percent(y)}" height="${percent(height)}"></rect>`;
  // Keys move between the days (billing.js); only one of them stops the tabulator.
  return html`<g class="day" role="img" aria-label="${bar.says}" tabindex="${at === days - 1 ? 0 : -1}">
<rect class="hit" x="${percent(room * at)}" width="${percent(room)}" y="0" height="100%"></rect>
${rectangle("kept", 100 - kept, kept)}${rectangle("returned", 100 - kept - returned, returned)}
<text class="says" x="100%" y="-10" aria-hidden="true">${bar.says}</text>
</g>
`;
}

function dates(bars: readonly Bar[]): Html {
  const labels = [
    { bar: bars[0], x: "0", anchor: "start" },
    { bar: bars[Math.floor((bars.length - 1) / 2)], x: "50%", anchor: "middle" },
    { bar: bars.at(-1), x: "100%", anchor: "end" },
  ];
  return html`${labels.map(
    ({ bar, x, anchor }) =>
      bar &&
      html`<text class="tick" x="${x}" y="182" text-anchor="${anchor}" aria-hidden="true">${dayOf(bar.day)}</text>
`,
  )}`;
}

const percent = (value: number) => `${Math.round(value * 1_000) / 1_000}%`;
