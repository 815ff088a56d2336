import { z } from "zod";
import { protocolTimes } from "./protocol-times.ts";

/** A whole number, in digits alone: what other notations would stand for is nothing to guess about. */
function wholeNumber(min: number, max: number) {
  const expected = `expected a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, expected)
    .transform(Number)
    .refine((value) => value >= min && value <= max, expected);
}

const port = wholeNumber(0, 65_535);
/** Calls to a provider that one worker process has under way at once. */
const callsAtOnce = wholeNumber(1, 10_000);

const expectedUrl = (protocols: readonly string[]) =>
  `expected a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`;

function url(...protocols: string[]) {
  const expected = expectedUrl(protocols);
  return z
    .string(expected)
    .refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), expected);
}

/** An address without a path, as browsers call an origin: which path is asked for there is ours to say. */
function origin(...protocols: string[]) {
  const expected = `${expectedUrl(protocols)} and has no path`;
  const isOrigin = (text: string) => {
    const address = URL.parse(text);
    return address !== null && protocols.includes(address.protocol) && address.href === `${address.origin}/`;
  };
  return z
    .string()
    .refine(isOrigin, expected)
    .transform((text) => new URL(text).origin);
}

/** A secret of Stripe; its prefix tells what it is for, so that one is not taken for the other. */
function stripeSecret(...prefixes: string[]) {
  return z
    .string()
    .regex(
      new RegExp(`^(${prefixes.join("|")})[\\w-]{8,}$`),
      `expected letters, digits, - or _ that begin with ${prefixes.join(" or ")}`,
    )
    .optional();
}

const topupUsd = { min: 1, max: 10_000 };

export const providerNames = ["sandbox", "serpapi", "serper", "searxng", "dataforseo"] as const;
export type ProviderName = (typeof providerNames)[number];

const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

/** What the engine needs to know: whom to ask, and how each of them is reached. */
const engineSettings = z.object({
  /** Whom to ask, in order of preference. */
  SERP_PROVIDERS: z
    .string()
    .default("sandbox")
    .transform((text) => text.split(",").map((name) => name.trim()))
    .pipe(z.array(z.enum(providerNames, `expected a comma list of: ${providerNames.join(", ")}`))),
  /** Milliseconds after which a search that has no answer yet is also put to the next provider; 0 for never. */
  SERP_HEDGE_AFTER_MS: wholeNumber(0, 120_000).default(0),
  /** Seconds for which an answer also answers later searches for the same; 0 for none but those of the same moment. */
  SEARCH_CACHE_SECONDS: wholeNumber(0, 86_400).default(0),
  /** It travels in the address. */
  SERPAPI_API_KEY: z
    .string()
    .regex(/^[\w-]{20,}$/, "expected 20 or more letters, digits, - or _")
    .optional(),
  SERPAPI_BASE_URL: url("http:", "https:").default("https://serpapi.com"),
  SERPAPI_CONCURRENCY: callsAtOnce.default(50),
  /** It travels in a header. */
  SERPER_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, "expected visible ASCII characters without spaces")
    .optional(),
  SERPER_BASE_URL: url("http:", "https:").default("https://google.serper.dev"),
  /** The smallest package allows 50 calls a second, which take about a second each. */
  SERPER_CONCURRENCY: callsAtOnce.default(50),
  /** An instance of one's own; there is none that everybody may use. */
  SEARXNG_BASE_URL: url("http:", "https:").optional(),
  /** Google blocks an instance the sooner, the more it asks. */
  SEARXNG_CONCURRENCY: callsAtOnce.default(4),
  /** The name of Basic authentication ends at the first colon. */
  DATAFORSEO_LOGIN: z
    .string()
    .regex(/^[\x21-\x39\x3b-\x7e]+$/, "expected visible ASCII characters without spaces and colons")
    .optional(),
  /** The one of the API, which is not the one of the account. */
  DATAFORSEO_PASSWORD: z
    .string()
    .regex(/^[\x21-\x7e]+$/, "expected visible ASCII characters without spaces")
    .optional(),
  DATAFORSEO_BASE_URL: url("http:", "https:").default("https://api.dataforseo.com"),
  /** They refuse more than 30 at once of one account. */
  DATAFORSEO_CONCURRENCY: callsAtOnce.default(30),
});

const settings = z.object({
  /** Where the ledger is. One database, Postgres 15 or newer. */
  DATABASE_URL: url("postgres:", "postgresql:"),
  /** Where holds, rate windows and the queue are. Redis 7 or newer, or Valkey. */
  REDIS_URL: url("redis:", "rediss:"),
  /** The interface of every listener. Containers set 0.0.0.0. */
  HOST: z
    .string()
    .regex(/^[\w.:%-]+$/, "expected an address or the name of a host")
    .default("127.0.0.1"),
  API_PORT: port.default(3000),
  API_OPS_PORT: port.default(3001),
  WORKER_OPS_PORT: port.default(3002),
  /** Searches that one worker process runs at once. Waiting for a provider costs a worker next to nothing. */
  WORKER_CONCURRENCY: wholeNumber(1, 1_000).default(32),
  /** Milliseconds from the arrival of a search to its last possible answer. */
  SEARCH_DEADLINE_MS: wholeNumber(protocolTimes.searchDeadlineMinMs, protocolTimes.searchDeadlineMaxMs).default(
    protocolTimes.searchDeadlineDefaultMs,
  ),
  ...engineSettings.shape,
  /** Proxies in front of the API that set X-Forwarded-For and X-Forwarded-Proto. Without any, nobody is believed. */
  TRUSTED_PROXIES: wholeNumber(0, 10).default(0),
  /** Where a caller without credits is sent. */
  TOPUP_URL: z
    .string()
    .refine((text) => text.startsWith("/") || URL.canParse(text), "expected a URL, or a path that begins with /")
    .default("/billing"),
  /** The address under which callers reach the API. */
  PUBLIC_URL: origin("http:", "https:").optional(),
  /** Charges for top-ups. A restricted key will do that may write Checkout Sessions, and read payments for `topups-check`. */
  STRIPE_SECRET_KEY: stripeSecret("sk_", "rk_"),
  /** What Stripe signs its events with, for the endpoint /stripe/webhook. */
  STRIPE_WEBHOOK_SECRET: stripeSecret("whsec_"),
  STRIPE_BASE_URL: origin("http:", "https:").default("https://api.stripe.com"),
  /** Where people pay: Stripe's own page, or the domain that an account has for it. */
  STRIPE_CHECKOUT_ORIGIN: origin("https:").default("https://checkout.stripe.com"),
  /** The top-ups that are offered, in whole USD. */
  TOPUP_AMOUNTS_USD: z
    .string()
    .default("10,25,100")
    .transform((text) => text.split(",").map((amount) => amount.trim()))
    .pipe(z.array(wholeNumber(topupUsd.min, topupUsd.max))),
  /** Names beside PUBLIC_URL's host under which /mcp may be addressed. Pages of other origins cannot call it. */
  MCP_ALLOWED_HOSTS: z
    .string()
    .default("")
    .transform((text) => text.split(",").map((name) => name.trim()))
    .pipe(z.array(z.string().regex(/^[\w.-]*$/, "expected a comma list of host names, without ports")))
    .transform((names) => names.filter((name) => name !== "").map((name) => name.toLowerCase())),
  LOG_LEVEL: z.enum(logLevels, `expected one of: ${logLevels.join(", ")}`).default("info"),
});

/** Some settings need each other: with half of them, payments would be taken and never credited. */
const connected = settings
  .superRefine(({ STRIPE_SECRET_KEY: key, STRIPE_WEBHOOK_SECRET: secret, PUBLIC_URL: address }, check) => {
    const miss = (name: string, other: string) =>
      check.addIssue({ code: "custom", path: [name], message: `needed together with ${other}` });
    if (key !== undefined && secret === undefined) miss("STRIPE_WEBHOOK_SECRET", "STRIPE_SECRET_KEY");
    if (key === undefined && secret !== undefined) miss("STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET");
    if (key !== undefined && address === undefined) miss("PUBLIC_URL", "STRIPE_SECRET_KEY");
  })
  // It stands in errors of the API, where a path alone leads nowhere.
  .transform(({ TOPUP_URL: place, ...given }) => ({
    ...given,
    TOPUP_URL: place.startsWith("/") && given.PUBLIC_URL !== undefined ? given.PUBLIC_URL + place : place,
  }));

export type Config = Readonly<z.infer<typeof connected>>;
export type EngineConfig = Readonly<z.infer<typeof engineSettings>>;

/** The environment names a setting that is missing or wrong. The message lists each with what was expected. */
export class ConfigError extends Error {
  constructor(lines: Iterable<string>) {
    super(["These settings are missing or wrong:", ...lines].join("\n  "));
  }
}

/** A provider cannot be asked without these settings, which are optional for all others. */
export class MissingSettings extends ConfigError {
  readonly names: readonly string[];

  constructor(provider: ProviderName, ...names: readonly string[]) {
    super(names.map((name) => `${name}: needed by the provider ${provider}`));
    this.names = names;
  }
}

/**
 * Reads and checks the settings once. An empty value counts as absent, so that a compose file may pass all through.
 * @throws {ConfigError} naming every wrong setting; values are never repeated, since some are secrets.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  return read(connected, environment);
}

/** Reads only where the database is: a migration needs nothing else. @throws {ConfigError} like {@link readConfig}. */
export function readDatabaseUrl(environment: NodeJS.ProcessEnv = process.env): string {
  return read(settings.pick({ DATABASE_URL: true }), environment).DATABASE_URL;
}

/**
 * Reads only what the engine needs: whoever asks providers without searching for anybody has neither Postgres nor Redis.
 * `defaults` hold for what the environment does not name. @throws {ConfigError} like {@link readConfig}.
 */
export function readEngineConfig(
  environment: NodeJS.ProcessEnv = process.env,
  defaults: Readonly<Record<string, string>> = {},
): EngineConfig {
  return read(engineSettings, environment, defaults);
}

function read<Shape extends z.ZodType<object>>(
  schema: Shape,
  environment: NodeJS.ProcessEnv,
  defaults: Readonly<Record<string, string>> = {},
): Readonly<z.infer<Shape>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const checked = schema.safeParse({ ...defaults, ...given });
  if (checked.success) return Object.freeze(checked.data);
  const lines = new Set(checked.error.issues.map((issue) => `${issue.path.slice(0, 1).join("")}: ${issue.message}`));
  throw new ConfigError(lines);
}
