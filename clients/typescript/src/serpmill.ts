import type { CompactSearchAnswer, PendingAnswer, SearchAnswer, SearchRequest, Usage } from "./answers.ts";
import { type Call, type CodedError, type Connection, send } from "./call.ts";
import { type ManyOptions, type ManyOutcome, searchMany } from "./search-many.ts";

export type * from "./answers.ts";
export * from "./errors.ts";
export type { CodedError, ManyOptions, ManyOutcome };

const deadlineMsDefault = 90_000; // Two whole searches, and a third that only fetches what they paid.
const deadlineMsMax = 12 * 3_600_000; // Far within the 24 hours for which the API keeps a paid answer under its key.
const maxRetriesDefault = 4;

export interface SerpmillOptions {
  /** `smk_…`; the environment's `SERPMILL_TOKEN` by default. */
  token?: string;
  /** The address of the API, such as `https://api.example.com`; the environment's `SERPMILL_URL` by default. */
  baseURL?: string;
  /** The most time for one call with its repeats; 90,000 by default, at most 12 hours. */
  deadlineMs?: number;
  /**
   * How often a call is repeated that was certainly not charged; 4 by default. A search that may have been charged, or waits
   * for others of the organization, is repeated until the deadline. 0: no call is ever repeated.
   */
  maxRetries?: number;
  /** Used in place of the global `fetch`. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** The key of this search in place of a random one: 1 to 255 visible ASCII characters. */
  idempotencyKey?: string;
  deadlineMs?: number;
  maxRetries?: number;
}

/** A client of one API. Each search has one Idempotency-Key, which all its repeats share, so no search is charged twice. */
export class Serpmill {
  readonly #connection: Connection;
  readonly #limits: { deadlineMs: number; maxRetries: number };

  /** @throws {TypeError} if token or address are missing or not valid. */
  constructor(options: SerpmillOptions = {}) {
    const { SERPMILL_TOKEN, SERPMILL_URL } = globalThis.process?.env ?? {};
    const { baseURL = SERPMILL_URL, fetch: own } = options;
    // A file of settings may end its lines with CRLF. The address is read as a URL, which has no blanks around it.
    const token = (options.token ?? SERPMILL_TOKEN)?.trim();
    if (!token || !/^[!-~]+$/.test(token)) throw new TypeError("Expected a token in `token` or SERPMILL_TOKEN.");
    // What was given instead may be a secret.
    if (!baseURL || !/^https?:\/\/[^@?#]+$/.test(baseURL) || !URL.canParse(baseURL))
      throw new TypeError("Expected the API's address, https://…, in `baseURL` or SERPMILL_URL.");
    this.#connection = {
      token,
      baseURL: new URL(baseURL).href.replace(/\/+$/, ""),
      // The global one is looked up for each request: a program may replace it later, as for tests or traces.
      fetch: (...request) => (own ?? globalThis.fetch)(...request),
    };
    this.#limits = limitsOf(options, { deadlineMs: deadlineMsDefault, maxRetries: maxRetriesDefault });
  }

  /**
   * Runs a search. It is charged once, however often it has to be repeated.
   * @throws {SerpmillError} (asynchronously) of the class of its code.
   */
  search(request: SearchRequest & { format: "compact" }, options?: CallOptions): PendingAnswer<CompactSearchAnswer>;
  search(request: SearchRequest & { format?: "full" }, options?: CallOptions): PendingAnswer<SearchAnswer>;
  search(request: SearchRequest, options?: CallOptions): PendingAnswer<SearchAnswer | CompactSearchAnswer>;
  search(request: SearchRequest, options: CallOptions = {}): PendingAnswer<SearchAnswer | CompactSearchAnswer> {
    const { idempotencyKey = crypto.randomUUID() } = options;
    if (!/^[!-~]{1,255}$/.test(idempotencyKey))
      throw new TypeError(`Expected 1 to 255 visible ASCII characters as \`idempotencyKey\`. Got ${idempotencyKey}.`);
    const body = JSON.stringify(request);
    return this.#call(
      { method: "POST", path: "/v1/serp/search", body, idempotencyKey, answerField: "results" },
      options,
    );
  }

  /** Reads the available credit, the plan and the limits. It costs nothing. */
  usage(options: Omit<CallOptions, "idempotencyKey"> = {}): PendingAnswer<Usage> {
    return this.#call({ method: "GET", path: "/v1/usage", answerField: "creditBalanceMils" }, options);
  }

  /**
   * Runs many searches, a few at once and within the rate window, and yields each as it ends, with its answer or its error.
   * Leaving the loop early ends the searches that run. Those already sent may be charged; give keys to fetch them.
   * @throws {SerpmillError} when none of the rest can succeed, after it has yielded those that ran.
   */
  searchMany(
    requests: Iterable<SearchRequest & { format?: "full" }> | AsyncIterable<SearchRequest & { format?: "full" }>,
    options?: ManyOptions,
  ): AsyncGenerator<ManyOutcome<SearchAnswer>, void, undefined>;
  searchMany(
    requests: Iterable<SearchRequest> | AsyncIterable<SearchRequest>,
    options?: ManyOptions,
  ): AsyncGenerator<ManyOutcome<SearchAnswer | CompactSearchAnswer>, void, undefined>;
  searchMany(requests: Iterable<SearchRequest> | AsyncIterable<SearchRequest>, options: ManyOptions = {}) {
    const { inFlightMax = 1 } = options;
    if (!(Number.isInteger(inFlightMax) && inFlightMax > 0))
      throw new RangeError(`Expected a whole number from 1 as \`inFlightMax\`. Got ${inFlightMax}.`);
    return searchMany((request, call) => this.search(request, call), requests, options);
  }

  #call<Answer>(call: Omit<Call, "signal" | "deadlineMs" | "maxRetries">, options: CallOptions): PendingAnswer<Answer> {
    const limits = limitsOf(options, this.#limits);
    const reply = send<Answer>(this.#connection, { ...call, ...limits, signal: options.signal });
    const answer = reply.then(({ data }) => data);
    const withResponse = () => {
      answer.catch(() => undefined); // The caller handles the error of the other promise.
      return reply;
    };
    return Object.assign(answer, { withResponse });
  }
}

type Limits = Pick<Call, "deadlineMs" | "maxRetries">;

function limitsOf(options: Partial<Limits>, { deadlineMs, maxRetries }: Limits): Limits {
  const limits = { deadlineMs: options.deadlineMs ?? deadlineMs, maxRetries: options.maxRetries ?? maxRetries };
  if (!(limits.deadlineMs > 0 && limits.deadlineMs <= deadlineMsMax))
    throw new RangeError(`Expected a \`deadlineMs\` from 1 to ${deadlineMsMax}. Got ${limits.deadlineMs}.`);
  if (!(Number.isInteger(limits.maxRetries) && limits.maxRetries >= 0))
    throw new RangeError(`Expected a whole number from 0 as \`maxRetries\`. Got ${limits.maxRetries}.`);
  return limits;
}
