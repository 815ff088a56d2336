import type { z } from "zod";
import { StartRefused } from "./start-refused.ts";
import { readSecretFiles } from "./secret-files.ts";
import { secretSettings } from "./secret-settings.ts";

/** A setting is missing or wrong. The message lists each of them with what was expected. */
export class ConfigError extends StartRefused {
  /** Each begins with the setting. */
  readonly lines: readonly string[];

  constructor(lines: Iterable<string>) {
    const all = [...lines];
    super(["These settings are missing or wrong:", ...all].join("\n  "));
    this.lines = all;
  }
}

/**
 * Checks settings. An empty value counts as absent. A secret may come from a file.
 * @param declared the settings that `schema` checks; the files of the secrets among them are read.
 * @param defaults apply to settings that the environment does not have.
 * @throws {ConfigError} naming every wrong setting, without values.
 */
export function readSettings<Shape extends z.ZodType<object>>(
  schema: Shape,
  declared: z.ZodObject,
  environment: NodeJS.ProcessEnv,
  defaults: Readonly<Record<string, string>> = {},
): Readonly<z.infer<Shape>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const secrets = secretSettings.filter((name) => name in declared.shape);
  const { values, faults } = readSecretFiles(given, secrets);
  const checked = schema.safeParse({ ...defaults, ...given, ...Object.fromEntries(values) });
  if (checked.success && faults.size === 0) return Object.freeze(checked.data);
  const lines = (checked.error?.issues ?? []).flatMap(({ path: [first = ""], message }) => {
    const name = String(first);
    if (faults.has(name)) return [];
    return `${name}${values.has(name) ? ` (from ${name}_FILE)` : ""}: ${message}`;
  });
  throw new ConfigError(new Set([...faults.values(), ...lines]));
}
