import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ConfigError, readConfig, readEngineConfig, readMigrationConfig } from "../../../shared/config.ts";
import { expectedRedisUrl } from "../../../shared/config/redis-address.ts";
import { fileSettingOf, type SecretSetting, secretSettings } from "../../../shared/config/secret-settings.ts";
import { settingNames } from "../../harness/assertions/declared.ts";
import { codesIn, page } from "../../docs/markdown.ts";

/** Secrets from files: NAME_FILE in place of NAME. */

const folder = mkdtempSync(join(tmpdir(), "serpmill-secrets-"));
afterAll(() => rmSync(folder, { recursive: true }));

const valid: Record<SecretSetting, string> = {
  DATABASE_URL: "postgres://login:canary@localhost/serpmill",
  MIGRATION_DATABASE_URL: "postgres://owner:canary@localhost/serpmill",
  REDIS_URL: "redis://api:canary@localhost:6379",
  SENTINEL_PASSWORD: "canary",
  SERPAPI_API_KEY: "canary-of-twenty-letters",
  SERPER_API_KEY: "canary",
  DATAFORSEO_LOGIN: "canary@mail.example",
  DATAFORSEO_PASSWORD: "canary",
  SEARCHAPI_API_KEY: "canary",
  STRIPE_SECRET_KEY: "sk_test_canary12",
  STRIPE_WEBHOOK_SECRET: "whsec_canary12",
  OTEL_EXPORTER_OTLP_HEADERS: "api-key=canary",
};
const environment = { ...valid, PUBLIC_URL: "https://serp.example", SERP_PROVIDERS: "sandbox" };

let files = 0;
function fileWith(content: string | Uint8Array): string {
  files += 1;
  const path = join(folder, `secret-${files}`);
  writeFileSync(path, content);
  return path;
}

/** The settings with this secret from a file. */
const fromFile = (name: SecretSetting, path: string) => ({ ...environment, [name]: "", [fileSettingOf(name)]: path });

function refusalOf(read: () => unknown): string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n  ").slice(1);
    throw error;
  }
}

test.each(secretSettings)("%s may come from a file, with and without a line break at its end", (name) => {
  for (const end of ["", "\n", "\r\n"]) {
    expect(readConfig(fromFile(name, fileWith(valid[name] + end)))).toEqual(readConfig(environment));
  }
});

test("every setting that is a secret or contains one may come from a file", () => {
  const declared = settingNames();
  const secret = /(KEY|SECRET|PASSWORD|LOGIN|TOKEN|HEADERS|CREDENTIALS?|(DATABASE|REDIS)_URL)$/;
  expect(declared.length).toBeGreaterThan(20);
  expect(declared.filter((name) => secret.test(name)).toSorted()).toEqual([...secretSettings].toSorted());
});

test("the documentation lists the secrets that may come from files", () => {
  const [, section = ""] = page("docs/operating/configuration.md").prose.split("## Secrets in files");
  const documented = codesIn(section.split("\n## ")[0]).filter(
    (code) => /^[A-Z_]+$/.test(code) && !code.endsWith("_FILE"),
  );
  expect(new Set(documented)).toEqual(new Set(secretSettings));
});

test("a secret that is set twice is refused with both names, and a wrong file is no second fault", () => {
  const twice = { ...environment, REDIS_URL_FILE: join(folder, "none") };
  expect(refusalOf(() => readConfig(twice))).toEqual(["REDIS_URL: expected only one of REDIS_URL and REDIS_URL_FILE"]);
  expect(readConfig({ ...environment, REDIS_URL_FILE: "" })).toEqual(readConfig(environment));
});

const oneLine = "expected a file with one line of text in UTF-8";
const unreadable = "expected the path of a file that this process may read";
test.each([
  { what: "is missing", path: () => join(folder, "canary"), expected: `${unreadable} (ENOENT)` },
  { what: "lies below a file", path: () => join(fileWith("x"), "canary"), expected: `${unreadable} (ENOTDIR)` },
  { what: "has a zero byte in its path", path: () => "canary\0", expected: `${unreadable} (ERR_INVALID_ARG_VALUE)` },
  { what: "is a folder", path: () => folder, expected: "expected the path of a file, not of a folder or device" },
  { what: "is endless", path: () => "/dev/zero", expected: "expected the path of a file, not of a folder or device" },
  { what: "is empty", path: () => fileWith(""), expected: "expected a file that is not empty" },
  { what: "is only a line break", path: () => fileWith("\n"), expected: "expected a file that is not empty" },
  { what: "is large", path: () => fileWith("canary".repeat(1_366)), expected: "expected a file of at most 8192 bytes" },
  { what: "is no text", path: () => fileWith(Uint8Array.of(99, 255)), expected: oneLine },
  { what: "has two lines", path: () => fileWith("canary\ncanary\n"), expected: oneLine },
  { what: "ends with two line breaks", path: () => fileWith("canary\n\n"), expected: oneLine },
])("a file that $what is refused by the setting's name, without its path and content", ({ path, expected }) => {
  expect(refusalOf(() => readConfig(fromFile("SERPER_API_KEY", path())))).toEqual([`SERPER_API_KEY_FILE: ${expected}`]);
});

test("a pipe without a writer is refused and does not block the start", () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  expect(refusalOf(() => readConfig(fromFile("DATABASE_URL", pipe)))).toEqual([
    "DATABASE_URL_FILE: expected the path of a file, not of a folder or device",
  ]);
});

test("a wrong content is refused by both names, without the content", () => {
  expect(refusalOf(() => readConfig(fromFile("REDIS_URL", fileWith("https://canary"))))).toEqual([
    `REDIS_URL (from REDIS_URL_FILE): ${expectedRedisUrl}`,
  ]);
  expect(refusalOf(() => readConfig(fromFile("STRIPE_SECRET_KEY", fileWith(" sk_test_canary"))))).toEqual([
    "STRIPE_SECRET_KEY (from STRIPE_SECRET_KEY_FILE): expected letters, digits, - or _ that begin with sk_ or rk_",
  ]);
});

test("every file that cannot be used is named at once, beside the other wrong settings", () => {
  const settings = { DATABASE_URL_FILE: folder, REDIS_URL_FILE: folder, API_PORT: "x", SERP_PROVIDERS: "sandbox" };
  expect(refusalOf(() => readConfig(settings))).toEqual([
    "DATABASE_URL_FILE: expected the path of a file, not of a folder or device",
    "REDIS_URL_FILE: expected the path of a file, not of a folder or device",
    "API_PORT: expected a whole number from 0 to 65535",
  ]);
});

test("a migration and a check of the providers read only the files that they need", () => {
  const { DATABASE_URL, MIGRATION_DATABASE_URL, SERPER_API_KEY } = valid;
  const addresses = {
    DATABASE_URL_FILE: fileWith(DATABASE_URL),
    MIGRATION_DATABASE_URL_FILE: fileWith(MIGRATION_DATABASE_URL),
  };
  const migration = readMigrationConfig({ ...addresses, SERPER_API_KEY_FILE: folder });
  expect(migration).toEqual({ ownerUrl: MIGRATION_DATABASE_URL, processUrl: DATABASE_URL });
  const engine = readEngineConfig({
    SERP_PROVIDERS: "serper",
    SERPER_API_KEY_FILE: fileWith(SERPER_API_KEY),
    REDIS_URL_FILE: folder,
  });
  expect(engine).toMatchObject({ SERPER_API_KEY });
});
