import type { DurationFigures } from "../../../shared/search-log/durations.ts";
import { count, searches } from "../../pages/format.ts";
import { html, type Html } from "../../pages/html.ts";
import { duration } from "../searches/history-table.ts";
import { type Bar, type Drawing, key, labelOf, tokenlessNote } from "./chart.ts";
import type { Chart } from "./read-chart.ts";

const dayMs = 86_400_000;

/** Draws how long searches took: half of them, and 95 of 100. */
export function drawDurations(
  chart: Extract<Chart, { kind: "durations" }>,
  { isHours, now }: { isHours: boolean; now: Date },
): Drawing {
  const { periods } = chart;
  return {
    caption: caption(periods),
    bars: periods.map(barOf),
    format: duration,
    legend: html`${key("kept", "median")}${key("returned", "95th percentile")}`,
    table: table(periods, isHours),
    notes: notesOf(chart, isHours, now),
  };
}

/** Of the last day or hour that has any: percentiles of days do not add up to those of a month. */
function caption(periods: readonly DurationFigures[]): Html {
  const last = periods.findLast(({ measured }) => measured > 0);
  if (!last) return html`<strong>–</strong> <span class="aside">no durations</span>`;
  const { day, medianMs, p95Ms } = last;
  return html`<strong>${duration(medianMs ?? 0)}</strong> <span class="aside">median of ${labelOf(day)}; 95 % took ${duration(p95Ms ?? 0)} or less</span>`;
}

function barOf({ day, measured, medianMs, p95Ms }: DurationFigures): Bar {
  const label = labelOf(day);
  const [median, p95] = [medianMs ?? 0, p95Ms ?? 0];
  const summary =
    measured === 0
      ? `${label}: no durations`
      : `${label}: median ${duration(median)}, 95th percentile ${duration(p95)}, of ${searches(measured)}`;
  return { label, kept: median, returned: p95 - median, summary };
}

function table(periods: readonly DurationFigures[], isHours: boolean): Html {
  const cell = (ms: number | null) => html`<td class="number">${ms === null ? "–" : duration(ms)}</td>`;
  return html`<thead><tr><th scope="col">${isHours ? "Hour" : "Day"} (UTC)</th><th scope="col" class="number">Searches measured</th><th scope="col" class="number">Median</th><th scope="col" class="number">95th percentile</th></tr></thead>
<tbody>
${periods.toReversed().map(
  ({ day, measured, medianMs, p95Ms }) =>
    html`<tr><th scope="row"><time datetime="${day}">${labelOf(day)}</time></th><td class="number">${count(measured)}</td>${cell(medianMs)}${cell(p95Ms)}</tr>
`,
)}</tbody>`;
}

function notesOf(chart: Extract<Chart, { kind: "durations" }>, isHours: boolean, now: Date): string[] {
  const { periods, keptDays, samplesMax, isSampled, hasTokenless } = chart;
  const notes = [];
  // The log drops a day once all of it is older.
  const keptSinceMs = now.getTime() - (now.getTime() % dayMs) - keptDays * dayMs;
  if (Date.parse(periods[0]?.day ?? "") < keptSinceMs)
    notes.push(`Durations are kept for ${count(keptDays)} ${keptDays === 1 ? "day" : "days"}: older ones are gone.`);
  if (isSampled)
    notes.push(
      `Of each ${isHours ? "hour" : "day"} with more than ${searches(samplesMax)}, about so many were measured, spread over all of them.`,
    );
  if (hasTokenless) notes.push(tokenlessNote);
  return notes;
}
