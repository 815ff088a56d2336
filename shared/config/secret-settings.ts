import { isUtf8 } from "node:buffer";
import { readFileSync, statSync } from "node:fs";

/**
 * The settings that are secrets or contain one. Each may also come from a file, as orchestrators provide them: NAME_FILE is the
 * path of a file whose content is the value of NAME. Environments are shown by `docker inspect` and in /proc, and every child
 * process inherits them; files are not.
 */

const secretBytesMax = 8_192; // An address or a key has a few hundred.

const markAndLastLineBreak = /^\ufeff|\r?\n$/g;

/** With these we authenticate at providers. */
export const providerSecrets = [
  "SERPAPI_API_KEY",
  "SERPER_API_KEY",
  "DATAFORSEO_LOGIN",
  "DATAFORSEO_PASSWORD",
  "SEARCHAPI_API_KEY",
] as const;

/** The addresses of the data stores, which contain passwords. */
export const addressSecrets = ["DATABASE_URL", "MIGRATION_DATABASE_URL", "REDIS_URL"] as const;

export const secretSettings = [
  ...addressSecrets,
  "SENTINEL_PASSWORD",
  ...providerSecrets,
  "STRIPE_SECRET_KEY",
  "STRIPE_WEBHOOK_SECRET",
  "OTEL_EXPORTER_OTLP_HEADERS",
] as const;
export type SecretSetting = (typeof secretSettings)[number];

/** The setting that names the file with a secret. */
export const fileSettingOf = <Name extends SecretSetting>(name: Name) => `${name}_FILE` as const;

/** What the files contain, and the settings whose file cannot be used. No text here repeats a content or a path. */
interface SecretFiles {
  readonly values: ReadonlyMap<string, string>;
  /** By the name of the secret: a line that names the setting and what was expected. */
  readonly faults: ReadonlyMap<string, string>;
}

/** Reads the files of these secrets. `environment` has no empty values. */
export function readSecretFiles(
  environment: Readonly<Record<string, string | undefined>>,
  names: readonly SecretSetting[],
): SecretFiles {
  const values = new Map<string, string>();
  const faults = new Map<string, string>();
  for (const name of names) {
    const fileSetting = fileSettingOf(name);
    const path = environment[fileSetting];
    if (path === undefined) continue;
    if (environment[name] !== undefined) {
      faults.set(name, `${name}: expected only one of ${name} and ${fileSetting}`);
      continue;
    }
    const read = readSecret(path);
    if ("value" in read) values.set(name, read.value);
    else faults.set(name, `${fileSetting}: expected ${read.expected}`);
  }
  return { values, faults };
}

function readSecret(path: string): { value: string } | { expected: string } {
  let bytes: Buffer;
  try {
    // Before it is opened: to open a pipe waits for its writer.
    const found = statSync(path);
    if (!found.isFile()) return { expected: "the path of a file, not of a folder or device" };
    if (found.size > secretBytesMax) return { expected: `a file of at most ${secretBytesMax} bytes` };
    bytes = readFileSync(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    return { expected: `the path of a file that this process may read${code}` };
  }
  const value = bytes.toString().replace(markAndLastLineBreak, "");
  if (value === "") return { expected: "a file that is not empty" };
  return isUtf8(bytes) && !/[\r\n]/.test(value) ? { value } : { expected: "a file with one line of text in UTF-8" };
}
