import type { Command } from "commander";

/** These are programs of their own: only the worker's code knows the providers, and nothing here may load it. */
export function addProviderCommands(program: Command): void {
  program
    .command("providers")
    .description("providers: whom the workers ask")
    .executableDir(`${import.meta.dirname}/../../worker`)
    .command("check", "ask each provider of SERP_PROVIDERS how our account there is; exit 1 where one is not well", {
      executableFile: "check-providers.ts",
    });
}
