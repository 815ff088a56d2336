import { Semaphore } from "../../shared/concurrency/semaphore.ts";
import type { Context } from "../../shared/process/context.ts";
import { throttledWarning } from "../../shared/log.ts";
import type { CallRecorder } from "../providers/policies/attempt.ts";
import {
  appendEntry,
  bodyCharactersMax,
  type NoCall,
  type RawAnswer,
  type RawAnswerEntry,
  searchCharactersMax,
} from "./raw-answers.ts";
import { hasRedisHeadroom } from "../../shared/redis/memory.ts";
import { providerSecrets } from "../../shared/config/secret-settings.ts";
import type { EngineConfig } from "../../shared/config.ts";

/** Characters of the bodies that wait to be stored. Further ones are dropped. */
const waitingCharactersMax = 16 * 1024 * 1024;
/** An entry counts this much more than its body. */
const entryCharacters = 256;
/** Of maxmemory: raw answers leave room for the cache of answers. */
const redisShareMax = 0.4;
/** How long one look at the memory of Redis, or one failure, counts. */
const headroomMs = 1_000;

/** Keeps what belongs to one search. Neither method waits, and neither throws. */
export type RawAnswerRecorder = CallRecorder & { recordNoCall: (reason: NoCall) => void };

type Stored = "kept" | "no_headroom" | "dropped" | "failed";
type Parts = Pick<Context, "config" | "redis" | "clock" | "log" | "metrics">;

/**
 * Keeps the raw answers of providers in Redis, in the background: a search neither waits for it nor fails by it. Entries are
 * stored one after the other. An entry is lost if Redis is away or short of memory, or if too much waits.
 */
export class RawAnswers {
  readonly #parts: Parts;
  readonly #keepMs: number;
  readonly #removeSecrets: (text: string) => string;
  readonly #warn: (error: unknown) => void;
  readonly #semaphore = new Semaphore();
  #waitingCharacters = 0;
  #headroom: { stored: Stored; untilMs: number } = { stored: "kept", untilMs: 0 };

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#keepMs = parts.config.RAW_ANSWER_MINUTES * 60_000;
    this.#removeSecrets = openSecretRemoval(parts.config);
    this.#warn = throttledWarning(parts.log, "raw answers of providers are not kept");
  }

  recorderFor(requestId: string): RawAnswerRecorder {
    let charactersLeft = searchCharactersMax;
    return {
      requestId,
      record: ({ provider, outcome, ms }, { pageNumber, answer }) => {
        const at = new Date(this.#parts.clock.nowMs()).toISOString();
        const status = answer?.status ?? null;
        this.#store(requestId, answer?.body.length ?? 0, () => {
          const body = answer ? this.#removeSecrets(answer.body) : null;
          const kept = body?.slice(0, Math.min(charactersLeft, bodyCharactersMax)) ?? null;
          charactersLeft -= kept?.length ?? 0;
          const bodyCharacters = body?.length ?? 0;
          const call: RawAnswer = { provider, page: pageNumber, at, ms, outcome, status, body: kept, bodyCharacters };
          return { call };
        });
      },
      recordNoCall: (noCall) => this.#store(requestId, 0, () => ({ noCall })),
    };
  }

  /** Resolves when all answers are stored. */
  idle(): Promise<void> {
    return this.#semaphore.run(async () => undefined);
  }

  #store(requestId: string, bodyCharacters: number, entry: () => RawAnswerEntry): void {
    const characters = bodyCharacters + entryCharacters;
    if (this.#waitingCharacters + characters > waitingCharactersMax) return this.#count("dropped");
    this.#waitingCharacters += characters;
    void this.#semaphore.run(async () => {
      this.#count(await this.#append(requestId, entry));
      this.#waitingCharacters -= characters;
    });
  }

  /** Never throws. */
  async #append(requestId: string, entry: () => RawAnswerEntry): Promise<Stored> {
    const { redis } = this.#parts;
    try {
      if (performance.now() >= this.#headroom.untilMs)
        this.#remember((await hasRedisHeadroom(redis, redisShareMax)) ? "kept" : "no_headroom");
      if (this.#headroom.stored !== "kept") return this.#headroom.stored;
      await appendEntry(redis, requestId, entry(), this.#keepMs);
      return "kept";
    } catch (error) {
      this.#warn(error);
      // The next entries do not wait for a Redis that does not answer.
      this.#remember("failed");
      return "failed";
    }
  }

  #remember(stored: Stored): void {
    this.#headroom = { stored, untilMs: performance.now() + headroomMs };
  }

  #count(stored: Stored): void {
    this.#parts.metrics.rawAnswers.inc({ outcome: stored });
  }
}

/** @returns undefined if raw answers are not kept, which is the default. */
export function openRawAnswers(context: Context): RawAnswers | undefined {
  if (context.config.RAW_ANSWER_MINUTES === 0) return undefined;
  const rawAnswers = new RawAnswers(context);
  context.shutdown.register("raw answers", () => rawAnswers.idle());
  return rawAnswers;
}

const removed = "[secret]";

/**
 * Returns a function that replaces every secret of a provider in a text by `[secret]`. Providers repeat the request in
 * their answers, SerpApi with the key in it. The secret is also found as URLs, JSON and HTML encode it, and as the header
 * of Basic authentication.
 */
export function openSecretRemoval(config: EngineConfig): (text: string) => string {
  const secrets = providerSecrets.flatMap((name) => config[name] ?? []);
  const { DATAFORSEO_LOGIN: login, DATAFORSEO_PASSWORD: password } = config;
  if (login !== undefined && password !== undefined) secrets.push(btoa(`${login}:${password}`));
  if (secrets.length === 0) return (text) => text;
  // The longest first: one may be the beginning of another.
  const longestFirst = secrets.toSorted((one, other) => other.length - one.length);
  const pattern = new RegExp(longestFirst.map((secret) => secret.replace(/./g, encodedForms)).join("|"), "g");
  return (text) => text.replace(pattern, removed);
}

const namedEntities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** A pattern for a character of a secret, which may be encoded. Secrets are ASCII. */
function encodedForms(character: string): string {
  const code = character.charCodeAt(0);
  const digits = code.toString(16).padStart(2, "0");
  const literal = `\\x${digits}`;
  const hex = digits.replace(/[a-f]/, (digit) => `[${digit}${digit.toUpperCase()}]`);
  const named = character in namedEntities ? `|${namedEntities[character]}` : "";
  // A JSON text within a JSON text has several backslashes. Any number of them would take quadratic time. Two forms that match the
  // same text would take exponential time, where a text has the beginning of a secret.
  return `(?:${literal}|\\\\{1,16}(?:${literal}|u00${hex}|x${hex})|%${hex}|&#0*${code};|&#[xX]0*${hex};${named})`;
}
