import { pino } from "pino";
import { onTestFinished } from "vitest";
import { type Metrics, openMetrics } from "../../../shared/metrics.ts";
import { openGoogleEngine, type GoogleEngine } from "../../../worker/engine/google-engine.ts";
import type { ListedLocations } from "../../../worker/locations/listed-locations.ts";
import type { Provider } from "../../../worker/providers/provider.ts";
import { engineConfig } from "../fixtures/queries.ts";

/** The engine with these settings, as a worker opens it. The test has to close it. */
export function openGoogle(
  settings: Record<string, string> = {},
  options: { providers?: Provider[]; metrics?: Metrics; locations?: Pick<ListedLocations, "find"> } = {},
): GoogleEngine {
  const config = engineConfig(settings);
  return openGoogleEngine({ config, metrics: openMetrics(), log: pino({ level: "silent" }), ...options });
}

/** The engine with these providers, in order of preference. It closes with the test. */
export function googleOver(...providers: Provider[]): GoogleEngine {
  const google = openGoogle({}, { providers });
  onTestFinished(() => google.close());
  return google;
}
