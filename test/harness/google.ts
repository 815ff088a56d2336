import { onTestFinished } from "vitest";
import { createGoogle, type Google } from "../../worker/engine/google.ts";
import type { Provider } from "../../worker/engine/provider.ts";
import { engineConfig } from "./queries.ts";

/** The engine over these providers, in their order; it closes with the test. */
export function googleOver(...providers: Provider[]): Google {
  const google = createGoogle(engineConfig({}), { providers });
  onTestFinished(() => google.close());
  return google;
}
