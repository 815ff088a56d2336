import { axisValues } from "../../api/billing/overview/chart.ts";
import type { ContestantName } from "./contestants/contestant.ts";
import { type Measured, medianOf } from "./results.ts";

const size = { width: 640, height: 340 };
const frame = { left: 56, right: 120, top: 16, bottom: 44 };
const plot = { width: size.width - frame.left - frame.right, height: size.height - frame.top - frame.bottom };
const rateStepsMax = 6;
const decadesMsMin = 1;

/** Colours with enough contrast on white and on black pages. */
const colours: Record<ContestantName, string> = {
  serpmill: "#2f81f7",
  traced: "#1a7f37",
  yardstick: "#d9730d",
  bullmq: "#8250df",
};

/** A figure in ms, which each contestant has at each rate. */
export interface Curve {
  name: string;
  figure: (one: Measured) => number | undefined;
  dashes: string;
}

export const dashed = ' stroke-dasharray="5 4"';
export const dotted = ' stroke-dasharray="1 3"';

const percentiles: readonly Curve[] = [
  { name: "p50", figure: (one) => medianOf(one, ({ p50Ms }) => p50Ms), dashes: "" },
  { name: "p99", figure: (one) => medianOf(one, ({ p99Ms }) => p99Ms), dashes: dashed },
];

interface Point {
  rate: number;
  ms: number;
}

/** Draws latency against the arrival rate as an SVG: searches per second on x, milliseconds on a logarithmic y. */
export function drawLatency(measured: readonly Measured[], curves: readonly Curve[] = percentiles): string {
  const atRates = measured.filter(({ ratePerSecond }) => ratePerSecond !== undefined);
  const names = [...new Set(atRates.map(({ contestant }) => contestant))];
  const lines = names.flatMap((contestant) =>
    curves.map(({ name, figure, dashes }) => {
      const own = atRates.filter((one) => one.contestant === contestant);
      const points = own.map((one): Point => ({ rate: one.ratePerSecond ?? 0, ms: figure(one) ?? 0 }));
      return { label: `${contestant} ${name}`, colour: colours[contestant], dashes, points };
    }),
  );
  const all = lines.flatMap(({ points }) => points);
  const rateMax = Math.max(1, ...all.map(({ rate }) => rate));
  const decades = Math.max(decadesMsMin, ...all.map(({ ms }) => Math.ceil(Math.log10(ms))));
  const x = (rate: number) => frame.left + (rate / rateMax) * plot.width;
  // From 1 ms; faster points lie on the axis.
  const y = (ms: number) => frame.top + plot.height * (1 - Math.log10(Math.max(1, ms)) / decades);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" role="img" aria-label="Latency against load">`,
    "<style>text{font:12px sans-serif;fill:#57606a}.grid{stroke:#8c959f;stroke-opacity:.35}",
    "@media(prefers-color-scheme:dark){text{fill:#b1bac4}}</style>",
    ...axes(rateMax, decades, x, y),
    ...lines.map(({ points, colour, dashes }) => {
      const path = points.map(({ rate, ms }) => `${x(rate).toFixed(1)},${y(ms).toFixed(1)}`).join(" ");
      return `<polyline fill="none" stroke="${colour}" stroke-width="2"${dashes} points="${path}"/>`;
    }),
    ...legend(lines),
    "</svg>\n",
  ].join("\n");
}

function axes(rateMax: number, decades: number, x: (rate: number) => number, y: (ms: number) => number): string[] {
  const bottom = frame.top + plot.height;
  const right = frame.left + plot.width;
  const across = axisValues(rateMax, rateStepsMax)
    .filter((rate) => rate <= rateMax)
    .map((rate) => `<text x="${x(rate).toFixed(1)}" y="${bottom + 18}" text-anchor="middle">${rate}</text>`);
  const up = Array.from({ length: decades + 1 }, (_, power) => 10 ** power).flatMap((ms) => [
    `<line class="grid" x1="${frame.left}" x2="${right}" y1="${y(ms).toFixed(1)}" y2="${y(ms).toFixed(1)}"/>`,
    `<text x="${frame.left - 8}" y="${(y(ms) + 4).toFixed(1)}" text-anchor="end">${ms}</text>`,
  ]);
  return [
    ...up,
    ...across,
    `<text x="${frame.left + plot.width / 2}" y="${size.height - 6}" text-anchor="middle">searches due per second</text>`,
    `<text x="14" y="${frame.top + plot.height / 2}" text-anchor="middle" transform="rotate(-90 14 ${frame.top + plot.height / 2})">ms</text>`,
  ];
}

function legend(lines: readonly { label: string; colour: string; dashes: string }[]): string[] {
  const left = size.width - frame.right + 12;
  return lines.flatMap(({ label, colour, dashes }, row) => {
    const top = frame.top + 12 + row * 20;
    return [
      `<line stroke="${colour}" stroke-width="2"${dashes} x1="${left}" x2="${left + 20}" y1="${top}" y2="${top}"/>`,
      `<text x="${left + 26}" y="${top + 4}">${label}</text>`,
    ];
  });
}
