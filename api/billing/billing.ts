import type { ApiContext } from "../context.ts";
import { type Assets, readAssets } from "./assets.ts";
import { LiveStreams } from "./handlers/live-updates.ts";

/** What the billing page has open beside the API. */
export interface Billing {
  context: ApiContext;
  assets: Assets;
  streams: LiveStreams;
}

export function openBilling(context: ApiContext): Billing {
  return { context, assets: readAssets(), streams: new LiveStreams(context) };
}
