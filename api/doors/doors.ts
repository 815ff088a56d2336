import type { Request, RequestHandler, Response } from "express";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { Context } from "../../shared/process/context.ts";
import type { Config, DoorName } from "../../shared/config.ts";
import { searchStatuses } from "../../shared/metrics.ts";
import { STATUS_CODES } from "../../shared/process/http.ts";
import { issuesOf } from "../../shared/errors/issues.ts";
import { issuesIn } from "../../shared/errors/error-messages.ts";
import { CallerError, errors } from "../../shared/errors.ts";
import { type Query, queryFingerprint, readQuery } from "../../shared/query/query.ts";
import type { Caller, Scope } from "../../shared/organizations/organizations.ts";
import type { SearchResponseBody } from "../../shared/search-answer.ts";
import { CallerDisconnected } from "../errors.ts";
import type { SentToken } from "../identify.ts";
import { hasBearerToken, readApiKey } from "../http/request-headers.ts";
import { isEncodedUtf8 } from "../http/encoded-utf8.ts";
import { readJson } from "../http/read-json.ts";
import { sendJson } from "../http/send-json.ts";
import { readForm } from "../pages/form.ts";
import { abortOnDisconnect, type RequestScope, requestScopeOf } from "../http/request-scope.ts";
import { sha256 } from "../search/search-request.ts";
import {
  type AnsweredSearch,
  type AskedSearch,
  runSearch,
  type SearchHandlerParts,
  type SearchParts,
  sendAnswer,
} from "../v1/search.ts";
import type { Door, Order } from "./door.ts";
import { firecrawl } from "./firecrawl.ts";
import { openwebui } from "./openwebui.ts";
import { perplexity } from "./perplexity.ts";
import { searxng } from "./searxng.ts";
import { serper } from "./serper.ts";
import { tavily } from "./tavily.ts";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { readIdempotencyState } from "../../shared/credits/holds.ts";
import { timeOfId } from "../../shared/ids.ts";
import { orPostgresUnavailable, orRedisUnavailable } from "../datastore-unavailable.ts";
import type { PaidAnswers } from "../search/idempotency.ts";

const doors = { searxng, tavily, openwebui, perplexity, firecrawl, serper } satisfies Record<DoorName, Door>;

interface DoorParts extends SearchHandlerParts, Pick<Context, "config" | "redis" | "metrics"> {
  paidAnswers: PaidAnswers;
}

/** The doors that the operator has opened: a handler that takes their requests out of the API's own. */
export function openDoors(parts: DoorParts): RequestHandler | undefined {
  const { config, metrics } = parts;
  if (config.COMPAT_DOORS.length === 0) return undefined;
  for (const name of config.COMPAT_DOORS) {
    const { paths, about = {} }: Door = doors[name];
    for (const path of Object.keys(paths).filter((one) => !Object.hasOwn(about, one)))
      for (const status of searchStatuses) metrics.httpSeconds.zero({ route: routeOf(name, path), status });
  }
  const entranceOf = openEntrances(config);
  const serve = serveDoors(parts);
  return async (request, response, next) => {
    const entrance = entranceOf(request);
    if (entrance) await serve(entrance, request, response);
    else next();
  };
}

/**
 * Serves the request of a door's client like `POST /v1/serp/search`, with the same admission, hold, charge and delivery. Every
 * search has a key ({@link Repeats}), so it runs on if the client gives up, and the client's retry gets its answer.
 */
function serveDoors(parts: DoorParts) {
  const repeats = new Repeats(parts);
  return async (entrance: Entrance, request: Request, response: Response): Promise<void> => {
    const { name, path } = entrance;
    const door: Door = doors[name];
    const scope = requestScopeOf(response);
    writeErrorsOf(door, response);
    requireRoute({ name, path, door }, request, response);
    const identify = () => parts.identify(request, response, ...credentialOf(entrance, request));
    const about = door.about?.[path];
    if (about) {
      await identify();
      return sendJson(request, response, 200, JSON.stringify(about()));
    }
    const { signal: disconnected } = abortOnDisconnect(response);
    scope.search = {};
    const read = async () => (door.sent === "query" ? readFields(request) : readJson(request));
    const [caller, sent] = await scope.receive(identify, read);
    const { order, query } = readOrder(door, sent, scope);

    const idempotencyKey = await repeats.keyOf(caller, name, query);
    // Under its key the search would run on, and be charged, for a client that left before it began.
    if (disconnected.aborted) throw new CallerDisconnected();
    const asked = { caller, query, idempotencyKey, disconnected };
    const patienceMs = parts.config.COMPAT_PATIENCE_MS[name] ?? Number.POSITIVE_INFINITY;
    const answered = await runWithin(patienceMs, parts, scope, asked).catch((error: unknown) => {
      throw inClientsWords(error, door, order);
    });

    const page: SearchResponseBody = JSON.parse(answered.answer.body.toString());
    const durationMs = performance.now() - scope.receivedAtMs;
    const body = Buffer.from(JSON.stringify(order.write(page, { path, durationMs })));
    sendAnswer(parts, request, response, answered, body);
  };
}

/** From here on the request's errors have the form that the door's clients read. */
function writeErrorsOf(door: Door, response: Response): void {
  requestScopeOf(response).errorForm = (error, requestId) => {
    const status = door.statuses?.[error.code] ?? errors[error.code].status;
    // Some clients show only the reason phrase of the status line.
    response.statusMessage = `${STATUS_CODES[status] ?? "Refused"}: ${error.code}`;
    return { status, body: door.writeError(error, requestId, status) };
  };
}

const routeOf = (name: DoorName, path: string) => `/${name}${path}`;

/** @throws {CallerError} `not_found` or `method_not_allowed` */
function requireRoute({ name, path, door }: Entrance & { door: Door }, request: Request, response: Response): void {
  const methods = Object.hasOwn(door.paths, path) ? door.paths[path] : undefined;
  if (!methods) throw new CallerError("not_found", { paths: Object.keys(door.paths) });
  // The objectives count every route of a door as a search.
  if (!door.about?.[path]) requestScopeOf(response).route = routeOf(name, path);
  if (methods.includes(request.method)) return;
  response.setHeader("Allow", methods.join(", "));
  throw new CallerError("method_not_allowed");
}

/**
 * Clients send their token as a bearer token or as an API key, or it stands in their address. That must be one made for it: a proxy
 * or a history may have kept it.
 */
function credentialOf({ token }: Entrance, request: Request): [scope: Scope, sent: SentToken | undefined] {
  if (token !== undefined) return ["door", { token }];
  return ["search", hasBearerToken(request) ? undefined : { token: readApiKey(request) }];
}

/** The fields of the query string, and over these the fields of a form. Some clients post with the type of JSON and no body at all. */
async function readFields(request: Request): Promise<Record<string, unknown>> {
  const [, ...query] = request.url.split(/[?&]/);
  const [path] = query.find((field) => !isEncodedUtf8(field))?.split("=") ?? [];
  if (path !== undefined)
    throw new CallerError("bad_request", { issues: [{ path, message: "Expected valid UTF-8." }] });
  const isForm = request.is("application/x-www-form-urlencoded");
  return isForm ? { ...request.query, ...Object.fromEntries(await readForm(request)) } : request.query;
}

const sentFields = z.record(z.string(), z.unknown()).catch({});

/** @throws {CallerError} with the clients' names of the fields. */
function readOrder(
  { fields, names }: Door,
  sent: unknown,
  scope: Pick<RequestScope, "search">,
): { order: Order; query: Query } {
  const read = fields.safeParse(sent);
  if (!read.success) {
    scope.search = { keyword: sentFields.parse(sent)[names.keyword ?? ""] };
    throw new CallerError("bad_request", { issues: issuesOf(read.error, []) });
  }
  const order = read.data;
  scope.search = order.search;
  const given = Object.entries(order.search).filter(([, value]) => value !== undefined);
  try {
    return { order, query: readQuery(Object.fromEntries(given)) };
  } catch (error) {
    throw inClientsWords(error, { names }, order);
  }
}

/** The error of a search, with the clients' names of the fields. */
function inClientsWords(error: unknown, { names }: Pick<Door, "names">, { locationName }: Order): unknown {
  if (!(error instanceof CallerError)) return error;
  const clientNames = new Map(
    Object.entries({ ...names, ...(locationName !== undefined && { location: locationName }) }),
  );
  const nameOf = (field: string) => clientNames.get(field) ?? field;
  const { field } = error.details;
  const issues = issuesIn(error.details).map(({ path, message }) => ({ path: nameOf(path), message }));
  return new CallerError(error.code, {
    ...error.details,
    ...(issues.length > 0 && { issues }),
    ...(typeof field === "string" && { field: nameOf(field) }),
  });
}

/**
 * Runs a search until its answer, or until the client's patience ends. Then it goes on as if the client had disconnected: under
 * its key it is charged and kept for the client's retry.
 * @throws {CallerError} `engine_timeout` with the reason `still_running`, and the errors of the search.
 */
async function runWithin(
  patienceMs: number,
  parts: SearchParts,
  scope: RequestScope,
  asked: AskedSearch,
): Promise<AnsweredSearch> {
  const impatient = new AbortController();
  const leftMs = scope.receivedAtMs + patienceMs - performance.now();
  const timer = patienceMs < parts.searchTimeoutMs ? setTimeout(() => impatient.abort(), leftMs) : undefined;
  const disconnected = AbortSignal.any([asked.disconnected, impatient.signal]);
  try {
    const { searchRequest, answer } = await runSearch(parts, scope, { ...asked, disconnected });
    return { searchRequest: { ...searchRequest, disconnected: asked.disconnected }, answer };
  } catch (error) {
    if (!(error instanceof CallerDisconnected) || asked.disconnected.aborted) throw error;
    throw new CallerError("engine_timeout", { reason: "still_running", timeoutMs: patienceMs, retryAfterMs: 1_000 });
  } finally {
    clearTimeout(timer);
  }
}

/** A request at a door: its path is counted from the door's root, or from the token in the address. */
interface Entrance {
  name: DoorName;
  path: string;
  /** The token of an address such as `/searxng/k/<token>/search`, for clients that send none. */
  token?: string | undefined;
}

/** What precedes a token in an address. */
const tokenMark = "k";

/**
 * Opens each door under a path of its name, and those with a host of their own there as well. That host serves its door and nothing
 * else. @returns what finds the entrance of a request; a request of the API itself has none.
 */
function openEntrances({ COMPAT_DOORS, COMPAT_HOSTS }: Pick<Config, "COMPAT_DOORS" | "COMPAT_HOSTS">) {
  const byName = new Map<string, DoorName>(COMPAT_DOORS.map((name) => [name, name]));
  const byHost = new Map(COMPAT_HOSTS.map(([name, host]) => [host, name]));
  return (request: Request): Entrance | undefined => {
    // Users paste addresses with a trailing slash, and clients add another.
    const segments = request.path.split("/").filter((segment) => segment !== "");
    const ofHost = byHost.get(hostOf(request));
    const name = ofHost ?? (request.path.startsWith("//") ? undefined : byName.get(segments.shift() ?? ""));
    const [mark, token, ...rest] = segments;
    if (name && mark === tokenMark && token !== undefined) return { name, path: `/${rest.join("/")}`, token };
    return name && { name, path: `/${segments.join("/")}` };
  };
}

/** The host that the caller addressed, in lower case, without port and without the dot of a complete name. */
const hostOf = ({ headers }: Request): string =>
  (headers.host ?? "").toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");

/** For so long from its start, a repeat of a search joins it or gets its answer. */
const repeatMs = 60_000;
/** Requests for one search that begin within this time agree on a window, however the clocks of their APIs differ. */
const agreementMs = 10_000;

/**
 * The idempotency keys of searches at doors, whose clients send none. A key is made of the token, the door, the query and a window
 * of a minute, so that a client's retry finds the search that it repeats, in Redis while that runs and in Postgres once it was paid.
 *
 * A repeat within a minute of the start is in the same window or in the next one, so it also looks for the key of the window before.
 * It looks for the one before that as well: a repeat that joins a search takes its key over if the search fails, and so may have
 * begun in a later window than that of its key. The clock of this API may be behind that of the one which began the search, so it
 * also looks for the key of the next window. Two requests on either side of the end of a window agree on one in Redis. If Redis
 * loses that, or the record of a running search, the key of the window itself is the same: Postgres charges it once.
 */
export class Repeats {
  readonly #redis: Redis;
  readonly #paidAnswers: PaidAnswers;
  readonly #clock: { now: () => number };

  /** @param parts.paidAnswers those of admission, which notes who was refused: their lookups are shared. */
  constructor(parts: { redis: Redis; paidAnswers: PaidAnswers }, clock: { now: () => number } = Date) {
    this.#clock = clock;
    this.#redis = parts.redis;
    this.#paidAnswers = parts.paidAnswers;
  }

  /** The key of a search: that of the same search if it began in the last minute, or else a new one. */
  async keyOf({ organizationId, tokenId }: Caller, door: string, query: Query): Promise<string> {
    // A caller cannot send such a key, because a header allows no spaces in it.
    const search = `door ${door} ${tokenId} ${queryFingerprint(query)}`;
    const now = this.#clock.now();
    const window = await orRedisUnavailable(this.#agreeOnWindow(organizationId, search, Math.floor(now / repeatMs)));
    const keys = [window, window + 1, window - 1, window - 2].map((at) => `${search} ${at}`);
    const starts = await Promise.all(keys.map((key) => this.#startOf(organizationId, sha256(key))));
    const found = starts.findIndex((startedAt) => startedAt !== undefined && now - startedAt.getTime() <= repeatMs);
    return keys[Math.max(found, 0)] ?? search;
  }

  async #agreeOnWindow(organizationId: string, search: string, window: number): Promise<number> {
    const key = keysOf(organizationId).doorWindow(sha256(search));
    const earlier = await this.#redis.set(key, window, "PX", agreementMs, "NX", "GET");
    return Number(earlier ?? window);
  }

  /** When the search under a key began that runs or was paid; undefined if there is none. */
  async #startOf(organizationId: string, hash: string): Promise<Date | undefined> {
    const [runs, paid] = await Promise.all([
      orRedisUnavailable(readIdempotencyState(this.#redis, organizationId, hash)),
      orPostgresUnavailable(this.#paidAnswers.findKey({ organizationId, hash })),
    ]);
    const requestId = paid?.requestId ?? ("requestId" in runs ? runs.requestId : undefined);
    return requestId === undefined ? undefined : timeOfId(requestId);
  }
}
