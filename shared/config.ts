import { z } from "zod";
import { expectedRedisUrl, readRedisAddress } from "./config/redis-address.ts";
import { refuseOldNode, StartRefused } from "./config/start-refused.ts";
import { addressSecrets, fileSettingOf, readSecretFiles, secretSettings } from "./config/secret-settings.ts";
import {
  baseUrl,
  collectorAddress,
  filledPartsOf,
  formed,
  headerList,
  hostNames,
  isEachOnce,
  listOf,
  onOrOff,
  origin,
  port,
  postgresUrl,
  printableName,
  share,
  stripeSecret,
  trimmed,
  url,
  visibleAscii,
  wholeNumber,
} from "./config/setting-forms.ts";
import { protocolTimes } from "./protocol-times.ts";

/** The doors: APIs of other search services, spoken for their clients. */
export const doorNames = ["searxng", "tavily", "openwebui", "perplexity", "firecrawl", "serper"] as const;
export type DoorName = (typeof doorNames)[number];
const aDoorList = `expected a comma list of: ${doorNames.join(", ")}`;

/** A comma list of `door=value`, as pairs. */
function forDoors(value: RegExp, expected: string) {
  const form = new RegExp(`^(${doorNames.join("|")})=(${value.source})$`);
  const pair = formed(form, `expected a comma list of door=${expected}, with the doors ${doorNames.join(", ")}`)
    .transform((text) => text.split("="))
    .pipe(z.tuple([z.enum(doorNames), z.string()]));
  return z.string().toLowerCase().transform(filledPartsOf).pipe(z.array(pair));
}

/** The default patience of a door: less than that of its most impatient client. */
const usualPatience = { searxng: 4_500, tavily: 14_000, serper: 9_000 };

/** Concurrent calls to a provider, for each worker process. */
const providerConcurrency = wholeNumber(1, 10_000);

const topupUsd = { min: 1, max: 10_000 };

export const providerNames = ["sandbox", "serpapi", "serper", "searxng", "dataforseo", "searchapi"] as const;
export type ProviderName = (typeof providerNames)[number];

/** The sandbox makes answers up, which would be sold: so it is never a default, and the message says what it does. */
const aProviderList = `expected a comma list of: ${providerNames.filter((name) => name !== "sandbox").join(", ")}; or sandbox, which makes answers up`;

/** The engines of SearXNG that search Google's web index. */
const searxngEngines = ["google", "google cse"] as const;
export type SearxngEngine = (typeof searxngEngines)[number];
const aSearxngEngineList = `expected a comma list of: ${searxngEngines.join(", ")}`;

/** A part of what OpenTelemetry specifies. */
const samplers = [
  "traceidratio",
  "parentbased_traceidratio",
  "always_on",
  "parentbased_always_on",
  "always_off",
  "parentbased_always_off",
] as const;

const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

/** The settings of the engine: which providers to ask, and how to reach each of them. */
const engineSettings = z.object({
  /** The providers, in order of preference. */
  SERP_PROVIDERS: listOf(z.enum(providerNames, aProviderList), aProviderList),
  /** Milliseconds after which a search without an answer is also sent to the next provider; 0 for never. */
  SERP_HEDGE_AFTER_MS: wholeNumber(0, 120_000).default(0),
  /** How many seconds an answer is cached for identical searches; 0 shares it only among concurrent ones. */
  SEARCH_CACHE_SECONDS: wholeNumber(0, 86_400).default(0),
  /** Whether callers may learn which provider answered their search. */
  ANSWERED_BY: onOrOff.default("on"),
  /** It is sent in the URL. */
  SERPAPI_API_KEY: formed(/^[\w-]{20,}$/, "expected 20 or more letters, digits, - or _").optional(),
  SERPAPI_BASE_URL: baseUrl().default("https://serpapi.com"),
  /** Absent: the limit finds itself. */
  SERPAPI_CONCURRENCY: providerConcurrency.optional(),
  /** Whether an AI Overview that SerpApi only announces is fetched by a second, billed search. */
  SERPAPI_AI_OVERVIEW: onOrOff.default("off"),
  /** Whether SerpApi may answer from its cache, up to an hour old and free. */
  SERPAPI_CACHE: onOrOff.default("off"),
  SERPER_API_KEY: visibleAscii,
  SERPER_BASE_URL: baseUrl().default("https://google.serper.dev"),
  /** Absent: the limit finds itself. */
  SERPER_CONCURRENCY: providerConcurrency.optional(),
  /** The operator's own instance; there is no public one for this use. */
  SEARXNG_BASE_URL: baseUrl().optional(),
  /** Which engines of the instance to ask. Each of them searches Google. */
  SEARXNG_ENGINES: listOf(z.enum(searxngEngines, aSearxngEngineList)).default(["google"]),
  /** Google blocks an instance that sends too many requests. */
  SEARXNG_CONCURRENCY: providerConcurrency.default(4),
  /** The name of Basic authentication ends at the first colon. */
  DATAFORSEO_LOGIN: formed(
    /^[\x21-\x39\x3b-\x7e]+$/,
    "expected visible ASCII characters without spaces and colons",
  ).optional(),
  /** The password of the API, which is not that of the account. */
  DATAFORSEO_PASSWORD: visibleAscii,
  DATAFORSEO_BASE_URL: baseUrl().default("https://api.dataforseo.com"),
  /** DataForSEO refuses more than 30 concurrent calls of one account. */
  DATAFORSEO_CONCURRENCY: providerConcurrency.default(30),
  /** Whether DataForSEO waits for AI Overviews that Google loads later, for a surcharge. */
  DATAFORSEO_AI_OVERVIEW: onOrOff.default("on"),
  /** How often DataForSEO clicks on questions of `people_also_ask`, each time for a surcharge. */
  DATAFORSEO_QUESTION_CLICKS: wholeNumber(0, 4).default(0),
  /** Whether a further result of a domain, which Google shows below the first one, is a result of its own. */
  DATAFORSEO_UNGROUP_RESULTS: onOrOff.default("off"),
  SEARCHAPI_API_KEY: visibleAscii,
  SEARCHAPI_BASE_URL: baseUrl().default("https://www.searchapi.io"),
  /** Absent: the limit finds itself. */
  SEARCHAPI_CONCURRENCY: providerConcurrency.optional(),
  /** Whether an AI Overview that SearchApi only announces is fetched by a second, billed search. */
  SEARCHAPI_AI_OVERVIEW: onOrOff.default("off"),
});

const settings = z.object({
  /** The database with the ledger. Postgres 15 or newer. */
  DATABASE_URL: postgresUrl(),
  /** What is between the processes and Postgres: nothing that changes the session, or a pooler of transactions. */
  DATABASE_POOLER: z.enum(["none", "transaction"], "expected none or transaction").default("none"),
  /** The same database as its owner, for migrations alone: only these read its files. Absent if the processes log in as the owner too. */
  MIGRATION_DATABASE_URL: url("postgres:", "postgresql:").optional(),
  /** The Redis with holds, rate windows and the queue, or the Sentinels that know it. Redis 7 or newer, or Valkey. */
  REDIS_URL: trimmed((text) => readRedisAddress(text) !== undefined, expectedRedisUrl),
  /** The login at the Sentinels that REDIS_URL names, which is not that at Redis. */
  SENTINEL_USERNAME: z.string().optional(),
  SENTINEL_PASSWORD: z.string().optional(),
  /** The interface of every listener. Containers set 0.0.0.0. */
  HOST: formed(/^[\w.:%-]+$/, "expected an address or the name of a host").default("127.0.0.1"),
  API_PORT: port.default(3000),
  API_OPS_PORT: port.default(3001),
  WORKER_OPS_PORT: port.default(3002),
  /** The most searches that one worker process runs at once. How many it does run follows from its load. */
  WORKER_CONCURRENCY: wholeNumber(1, 1_000).default(1_000),
  /** Milliseconds from the arrival of a search to its last possible answer. */
  SEARCH_DEADLINE_MS: wholeNumber(protocolTimes.searchDeadlineMinMs, protocolTimes.searchDeadlineMaxMs).default(
    protocolTimes.searchDeadlineDefaultMs,
  ),
  ...engineSettings.shape,
  /** For so long a search's raw answers of providers are kept for `search raw`; 0 for not at all. */
  RAW_ANSWER_MINUTES: wholeNumber(0, 60).default(0),
  /** For so many days the search log is kept; 0 for not at all. */
  SEARCH_LOG_DAYS: wholeNumber(0, 400).default(30),
  /** How many days an organization may have its answers kept, at most; 0 keeps none. */
  KEPT_ANSWERS_DAYS: wholeNumber(0, 90).default(0),
  /** The most megabytes of answers, compressed, that each organization keeps. Its oldest ones give way. */
  KEPT_ANSWERS_MB: wholeNumber(10, 100_000).default(100),
  /** Proxies in front of the API that set X-Forwarded-For and X-Forwarded-Proto. With 0, both headers are ignored. */
  TRUSTED_PROXIES: wholeNumber(0, 10).default(0),
  /** The page for a caller without credits. */
  TOPUP_URL: z
    .string()
    .refine((text) => text.startsWith("/") || URL.canParse(text), "expected a URL, or a path that begins with /")
    .default("/billing"),
  /** The URL under which callers reach the API. */
  PUBLIC_URL: origin("http:", "https:").optional(),
  /** For top-ups. A restricted key is enough; docs/operating/payments.md has its rights. */
  STRIPE_SECRET_KEY: stripeSecret("sk_", "rk_"),
  /** Stripe signs its events for /stripe/webhook with it. */
  STRIPE_WEBHOOK_SECRET: stripeSecret("whsec_"),
  STRIPE_BASE_URL: origin("http:", "https:").default("https://api.stripe.com"),
  /** The origin of the payment page: Stripe's own, or the account's custom domain. */
  STRIPE_CHECKOUT_ORIGIN: origin("https:").default("https://checkout.stripe.com"),
  /** The amounts offered for top-ups, in whole USD. */
  TOPUP_AMOUNTS_USD: listOf(wholeNumber(topupUsd.min, topupUsd.max)).default([10, 25, 100]),
  /** Where webhooks of payers may lead: to public https addresses, to any address, or nowhere, which turns webhooks off. */
  WEBHOOK_TARGETS: z.enum(["public", "any", "none"], "expected public, any or none").default("public"),
  /** Host names besides PUBLIC_URL's under which /mcp may be called. Pages of other origins cannot call it. */
  MCP_ALLOWED_HOSTS: hostNames,
  /** The doors that are open: each serves the clients of another search service under a path of its name. */
  COMPAT_DOORS: z
    .string()
    .default("")
    .transform(filledPartsOf)
    .pipe(z.array(z.enum(doorNames, aDoorList))),
  /** Host names that each serve only one door: for clients that drop the path of an address. */
  COMPAT_HOSTS: forDoors(/[a-z0-9.-]+/, "host name, without a port")
    .refine((pairs) => isEachOnce(pairs.map(([, host]) => host)), "expected each host only once")
    .default([]),
  /** Milliseconds after which a door answers with an error, because its clients give up soon. The search runs on. */
  COMPAT_PATIENCE_MS: forDoors(/[1-9]\d{2,5}/, "milliseconds from 100 to 999999")
    .refine((pairs) => isEachOnce(pairs.map(([name]) => name)), "expected each door only once")
    .default([])
    .transform(
      (pairs): Partial<Record<DoorName, number>> => ({
        ...usualPatience,
        ...Object.fromEntries(pairs.map(([name, ms]) => [name, Number(ms)])),
      }),
    ),
  /** Host names with a dot under which the ops ports may be addressed. Any other may be that of a page of another site. */
  OPS_ALLOWED_HOSTS: hostNames,
  /** The name of the operator in the audit trail; by default the user of the operating system who runs the command. */
  OPERATOR_NAME: printableName,
  LOG_LEVEL: z.enum(logLevels, `expected one of: ${logLevels.join(", ")}`).default("info"),
  /** Where traces are sent, over HTTP. Absent: nothing is traced. */
  OTEL_EXPORTER_OTLP_ENDPOINT: collectorAddress.optional(),
  /** Sent with every request to it, usually a key. */
  OTEL_EXPORTER_OTLP_HEADERS: headerList.optional(),
  /** Which searches are traced. With `parentbased_` callers that send a trace decide about theirs. */
  OTEL_TRACES_SAMPLER: z.enum(samplers, `expected one of: ${samplers.join(", ")}`).default("traceidratio"),
  OTEL_TRACES_SAMPLER_ARG: share.default(0.01),
  /** Absent: serpmill-api, serpmill-worker. */
  OTEL_SERVICE_NAME: printableName,
});

/** Checks settings that need each other: with only some of them, payments would be taken and never credited. */
const connected = settings
  .superRefine(({ STRIPE_SECRET_KEY: key, STRIPE_WEBHOOK_SECRET: secret, PUBLIC_URL: address, ...sentinel }, check) => {
    const miss = (name: string, other: string) =>
      check.addIssue({ code: "custom", path: [name], message: `required together with ${other}` });
    if (key !== undefined && secret === undefined) miss("STRIPE_WEBHOOK_SECRET", "STRIPE_SECRET_KEY");
    if (key === undefined && secret !== undefined) miss("STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET");
    if (key !== undefined && address === undefined) miss("PUBLIC_URL", "STRIPE_SECRET_KEY");
    if (sentinel.SENTINEL_USERNAME !== undefined && sentinel.SENTINEL_PASSWORD === undefined)
      miss("SENTINEL_PASSWORD", "SENTINEL_USERNAME");
  })
  .superRefine(({ COMPAT_DOORS: open, COMPAT_HOSTS: hosts }, check) => {
    const closed = new Set(doorNames.filter((name) => !open.includes(name)));
    if (!hosts.some(([name]) => closed.has(name))) return;
    check.addIssue({ code: "custom", path: ["COMPAT_HOSTS"], message: "expected only doors that COMPAT_DOORS names" });
  })
  // API errors contain it, where a path without an origin is of no use.
  .transform(({ TOPUP_URL: topupUrl, ...given }) => ({
    ...given,
    TOPUP_URL: topupUrl.startsWith("/") && given.PUBLIC_URL !== undefined ? given.PUBLIC_URL + topupUrl : topupUrl,
  }));

export type Config = Readonly<z.infer<typeof connected>>;
export type EngineConfig = Readonly<z.infer<typeof engineSettings>>;

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

/** A configured provider lacks settings, which are optional for all others. */
export class MissingSettings extends ConfigError {
  readonly names: readonly string[];

  constructor(provider: ProviderName, ...names: readonly string[]) {
    super(names.map((name) => `${name}: required by the provider ${provider}`));
    this.names = names;
  }
}

/**
 * Reads and checks the settings, with `defaults` for absent ones. An empty one counts as absent: a compose file may pass all.
 * @throws {ConfigError} naming every wrong setting; values are never repeated, since some are secrets.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env, defaults?: Record<string, string>): Config {
  return readSettings(connected, settings, environment, defaults);
}

/** Reads only what a migration needs. @throws {ConfigError} like {@link readConfig}. */
export function readMigrationConfig(environment: NodeJS.ProcessEnv = process.env): {
  ownerUrl: string;
  processUrl: string;
} {
  const needed = settings.pick({ DATABASE_URL: true }).extend({ MIGRATION_DATABASE_URL: postgresUrl().optional() });
  const { DATABASE_URL: processUrl, MIGRATION_DATABASE_URL } = readSettings(needed, needed, environment);
  return { ownerUrl: MIGRATION_DATABASE_URL ?? processUrl, processUrl };
}

/** Reads only the addresses of the data stores. Each may be absent. @throws {ConfigError} like {@link readConfig}. */
export function readAddresses(environment: NodeJS.ProcessEnv = process.env) {
  const addresses = settings.pick({ DATABASE_URL: true, MIGRATION_DATABASE_URL: true, REDIS_URL: true }).partial();
  return readSettings(addresses, addresses, environment);
}

/** The settings that give a process these addresses, whatever it would inherit. */
export function addressSettings(addresses: { DATABASE_URL: string; REDIS_URL: string }) {
  const noFiles = Object.fromEntries(addressSecrets.map((name) => [fileSettingOf(name), ""]));
  return { ...noFiles, MIGRATION_DATABASE_URL: "", ...addresses };
}

/** The settings among these variables. */
export function settingsAmong(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const names = new Set<string>([...Object.keys(settings.shape), ...secretSettings.map(fileSettingOf)]);
  return Object.fromEntries(Object.entries(environment).filter(([name]) => names.has(name)));
}

/**
 * Reads only the engine's settings: a check of the providers needs neither Postgres nor Redis.
 * @throws {ConfigError} like {@link readConfig}.
 */
export const readEngineConfig = (environment: NodeJS.ProcessEnv = process.env): EngineConfig =>
  readSettings(engineSettings, engineSettings, environment);

/**
 * Checks settings. An empty value counts as absent. A secret may come from a file.
 * @param declared the settings that `schema` checks; the files of the secrets among them are read.
 * @param defaults apply to settings that the environment does not have.
 * @throws {ConfigError} naming every wrong setting, without values.
 * @throws {StartRefused} if Node is too old.
 */
function readSettings<Shape extends z.ZodType<object>>(
  schema: Shape,
  declared: z.ZodObject,
  environment: NodeJS.ProcessEnv,
  defaults: Readonly<Record<string, string>> = {},
): Readonly<z.infer<Shape>> {
  refuseOldNode(process.versions.node);
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
