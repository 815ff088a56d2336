import { onTestFinished } from "vitest";
import { createGoogle, type Google } from "../../worker/engine/google.ts";
import type { Provider } from "../../worker/engine/provider.ts";
import { engineConfig } from "./queries.ts";

/** The engine with these settings. Whoever opens it closes it. */
export function openGoogle(settings: Record<string, string> = {}, options: { providers?: Provider[] } = {}): Google {
  return createGoogle(engineConfig(settings), options);
}

/** The engine over these providers, in their order; it closes with the test. */
export function googleOver(...providers: Provider[]): Google {
  const google = openGoogle({}, { providers });
  onTestFinished(() => google.close());
  return google;
}
