import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { searchesPerSecond } from "./load.ts";

/**
 * Three quiet days: answered searches at the rate of the drill, two APIs and two workers. Some alerts compare with hours and
 * days. On an empty Prometheus the first failures would be a large share of all searches, and page sooner than in production.
 */

const days = 3;
const stepSeconds = 60;

const metric = "http_request_duration_seconds";
const labels = `job="api",instance="past",route="/v1/serp/search",status="200"`;
const searchSeries = [
  `${metric}_bucket{${labels},le="10"}`,
  `${metric}_bucket{${labels},le="+Inf"}`,
  `${metric}_count{${labels}}`,
];
const processSeries = ["api", "worker"].flatMap((job) => [1, 2].map((n) => `up{job="${job}",instance="past ${n}"}`));
// Prometheus considers a series alive until five minutes after its last sample.
const processesGoneSeconds = 360;

/** Writes the samples of these days into the folder of a Prometheus before it starts. */
export async function writePastTraffic(dataFolder: string): Promise<void> {
  const now = Math.floor(Date.now() / 1_000);
  const seconds = days * 86_400;
  const samplesOf = (name: string, valueAfter: (passedSeconds: number) => number, untilSeconds = seconds) =>
    Array.from({ length: untilSeconds / stepSeconds }, (_, step) => {
      const passed = step * stepSeconds;
      return `${name} ${valueAfter(passed)} ${now - seconds + passed}\n`;
    });
  const searches = searchSeries.flatMap((name) => samplesOf(name, (passed) => passed * searchesPerSecond));
  const processes = processSeries.flatMap((name) => samplesOf(name, () => 1, seconds - processesGoneSeconds));
  const file = `${dataFolder}.openmetrics`;
  const text = [`# TYPE ${metric} histogram\n`, ...searches, "# TYPE up gauge\n", ...processes, "# EOF\n"];
  await writeFile(file, text.join(""));
  await promisify(execFile)("promtool", ["tsdb", "create-blocks-from", "openmetrics", file, dataFolder]);
  await rm(file);
}
