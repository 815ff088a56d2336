import type { EngineConfig, ProviderName } from "../../shared/config.ts";
import type { Provider } from "./provider.ts";
import { openDataForSeo } from "./dataforseo/dataforseo.ts";
import { openSandbox } from "./sandbox/sandbox.ts";
import { openSearchapi } from "./searchapi/searchapi.ts";
import { openSearxng } from "./searxng/searxng.ts";
import { openSerpapi } from "./serpapi/serpapi.ts";
import { openSerper } from "./serper/serper.ts";

/** All providers. To add one: a folder with its adapter, a line here, and its settings in config.ts. */
const providers = {
  sandbox: openSandbox,
  serpapi: openSerpapi,
  serper: openSerper,
  searxng: openSearxng,
  dataforseo: openDataForSeo,
  searchapi: openSearchapi,
} satisfies Record<ProviderName, (config: EngineConfig) => Provider>;

/** @throws {MissingSettings} naming the settings that the provider needs and that are not set. */
export const openProvider = (name: ProviderName, config: EngineConfig): Provider => providers[name](config);

/**
 * The providers of SERP_PROVIDERS in order of preference.
 * @throws {MissingSettings} naming the settings that the first incomplete provider needs.
 */
export function openProviders(config: EngineConfig): Provider[] {
  return config.SERP_PROVIDERS.map((name) => openProvider(name, config));
}
