import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

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
export interface SecretFiles {
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
  let bytes: Buffer | undefined;
  try {
    bytes = readFile(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    return { expected: `the path of a file that this process may read${code}` };
  }
  if (bytes === undefined) return { expected: "the path of a file, not of a folder or device" };
  if (bytes.length > secretBytesMax) return { expected: `a file of at most ${secretBytesMax} bytes` };
  const value = bytes.toString().replace(markAndLastLineBreak, "");
  if (value === "") return { expected: "a file that is not empty" };
  return isUtf8(bytes) && !/[\r\n]/.test(value) ? { value } : { expected: "a file with one line of text in UTF-8" };
}

/** At most one byte more than a secret may have. Undefined if it is no file. Opening a pipe does not wait for its writer. */
function readFile(path: string): Buffer | undefined {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) return undefined;
    const bytes = Buffer.alloc(secretBytesMax + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(file, bytes, length, bytes.length - length, null);
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}
