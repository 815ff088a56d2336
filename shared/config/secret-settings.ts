/** The settings that are secrets or contain one. Each may also come from a file: `./secret-files.ts`. */

/** With these we authenticate at providers. */
export const providerSecrets = [
  "SERPAPI_API_KEY",
  "SERPER_API_KEY",
  "DATAFORSEO_LOGIN",
  "DATAFORSEO_PASSWORD",
] as const;

/** The addresses of the data stores, which contain passwords. */
export const addressSecrets = ["DATABASE_URL", "MIGRATION_DATABASE_URL", "REDIS_URL"] as const;

export const secretSettings = [
  ...addressSecrets,
  ...providerSecrets,
  "STRIPE_SECRET_KEY",
  "STRIPE_WEBHOOK_SECRET",
] as const;
export type SecretSetting = (typeof secretSettings)[number];

/** The setting that names the file with a secret. */
export const fileSettingOf = <Name extends SecretSetting>(name: Name) => `${name}_FILE` as const;
