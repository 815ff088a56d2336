import type { Config, ProviderName } from "../../shared/config.ts";
import type { Provider } from "./provider.ts";
import { openDataForSeo } from "./providers/dataforseo.ts";
import { openSandbox } from "./providers/sandbox.ts";
import { openSearxng } from "./providers/searxng.ts";
import { openSerpapi } from "./providers/serpapi.ts";
import { openSerper } from "./providers/serper.ts";

/** Every provider there is. A new one is a file, a line here, and its settings in config.ts. */
const providers = {
  sandbox: openSandbox,
  serpapi: openSerpapi,
  serper: openSerper,
  searxng: openSearxng,
  dataforseo: openDataForSeo,
} satisfies Record<ProviderName, (config: Config) => Provider>;

/**
 * The providers of SERP_PROVIDERS in order of preference, each once.
 * @throws {ConfigError} naming the setting that one of them lacks.
 */
export function openProviders(config: Config): Provider[] {
  return [...new Set(config.SERP_PROVIDERS)].map((name) => providers[name](config));
}
