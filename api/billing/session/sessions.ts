import { hash, randomBytes } from "node:crypto";
import type { Request, Response } from "express";
import type { Redis } from "ioredis";
import { z } from "zod";
import { CallerError } from "../../../shared/errors.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { sessionKeyOf as keyOf, sessionListOf } from "./session-keys.ts";
import type { Clock } from "../../../shared/redis/clock.ts";
import { execPipeline } from "../../../shared/redis/connect.ts";
import { orRedisUnavailable } from "../../datastore-unavailable.ts";
import { type FindByTokenHash, logCaller } from "../../identify.ts";

/**
 * Sessions of the account pages. The browser stores a random id in a cookie; Redis stores, under the hash of that id, the
 * hash of the token that signed in. Neither side stores a usable credential. A session is valid only while its token is
 * valid. Every page is only for the scope `billing`, but for those that say that the scope `search` is enough.
 *
 * A session is opened by a sign-in and ends when the person signs out or signs in again, when its token is revoked or
 * expires, after 30 minutes without activity, or 12 hours after it was opened.
 */

const idBytes = 32;
const idForm = /^[\w-]{43}$/;
const idleTimeoutSeconds = 30 * 60;
const lifetimeMs = 12 * 3_600_000;
/** One that would live longer than from now by more than this was opened before the clock of Redis was set back. */
const clockErrorMsMax = 60_000;

const sessionRecord = z.object({ tokenHash: z.string().regex(/^[0-9a-f]{64}$/), endsAtMs: z.number() });

export interface Session {
  /** The hash of the session's id. The id itself is kept only in the browser. */
  idHash: string;
  tokenHash: string;
  /** By the clock of Redis, when it ends at the latest. */
  endsAtMs: number;
}

/** What a page shows: the `account`, which needs the scope `billing`; or `searches`, which needs only `search`. */
export type Access = "account" | "searches";

/** The token that bounds what its session sees, because it lacks the scope `billing`: its own searches. */
export const onlyTokenOf = ({ scopes, tokenId }: Caller): string | undefined =>
  scopes.includes("billing") ? undefined : tokenId;

/** Whether a person sent the request (`active`) or only their open page (`idle`). Only the first extends a session. */
type Presence = "active" | "idle";

const hashId = (id: string) => hash("sha256", id);

/**
 * The cookie's name and path. Over https no other host can set it, not even one of the same site: browsers accept the prefix
 * `__Host-` only from the host itself, and only with the path "/".
 */
const cookieOf = (secure: boolean) => ({ name: secure ? "__Host-billing" : "serpmill", path: "/" });

interface SessionParts {
  redis: Redis;
  clock: Clock;
  findByTokenHash: FindByTokenHash;
  isSecure: (request: Request) => boolean;
}

/** Every method that reads or writes Redis throws `unavailable` if Redis does not answer. */
export class Sessions {
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** Signs a browser in, always under a new id (against session fixation), and ends the session that it had before. */
  async open(
    request: Request,
    response: Response,
    { tokenHash, organizationId }: { tokenHash: string; organizationId: string },
  ): Promise<void> {
    await this.#delete(request);
    const id = randomBytes(idBytes).toString("base64url");
    const nowMs = Math.round(this.#parts.clock.nowMs());
    const endsAtMs = nowMs + lifetimeMs;
    const list = sessionListOf(organizationId);
    const stored = this.#parts.redis
      .multi()
      .set(keyOf(hashId(id)), JSON.stringify({ tokenHash, endsAtMs }), "EX", idleTimeoutSeconds)
      .zremrangebyscore(list, "-inf", nowMs)
      .zadd(list, endsAtMs, hashId(id))
      .pexpire(list, lifetimeMs);
    await orRedisUnavailable(execPipeline(stored));
    this.#setCookie(request, response, id);
  }

  /**
   * Signs a browser out. The id then is invalid for every copy of the cookie.
   * @returns whether this call ended a session: of concurrent calls only one does.
   */
  async close(request: Request, response: Response): Promise<boolean> {
    const ended = await this.#delete(request);
    this.#setCookie(request, response, undefined);
    return ended > 0;
  }

  /** Reads the session of a request. With `active` presence its idle timeout restarts. */
  async read(request: Request, presence: Presence): Promise<Session | undefined> {
    const id = this.#readId(request);
    if (!id) return undefined;
    const key = keyOf(hashId(id));
    const record =
      presence === "active" ? this.#parts.redis.getex(key, "EX", idleTimeoutSeconds) : this.#parts.redis.get(key);
    return this.#parse(hashId(id), await orRedisUnavailable(record));
  }

  /** Whether a session is still open. This does not extend it. */
  async isOpen({ idHash }: Session): Promise<boolean> {
    return this.#parse(idHash, await orRedisUnavailable(this.#parts.redis.get(keyOf(idHash)))) !== undefined;
  }

  /**
   * The caller that a session's token belongs to, or why it may not see a page: `unauthenticated`, with the reason
   * `only_searches` if it may see others.
   */
  async callerOf(
    { tokenHash }: Pick<Session, "tokenHash">,
    response: Response,
    access: Access = "account",
  ): Promise<Caller | CallerError> {
    try {
      const caller = await this.#parts.findByTokenHash(tokenHash);
      logCaller(response, caller);
      const opensSearches = caller.scopes.includes("search");
      if (caller.scopes.includes("billing") || (opensSearches && access === "searches")) return caller;
      if (opensSearches) return new CallerError("unauthenticated", { reason: "only_searches" });
      return new CallerError("unauthenticated", { reason: "scope", scope: "billing" });
    } catch (error) {
      if (error instanceof CallerError && error.code === "unauthenticated") return error;
      throw error;
    }
  }

  /** Counts the session cookies of a request. With two, one may be another person's, so neither counts. */
  countCookies(request: Request): number {
    return this.#readIds(request).length;
  }

  async #delete(request: Request): Promise<number> {
    const keys = this.#readIds(request).map((id) => keyOf(hashId(id)));
    return keys.length > 0 ? orRedisUnavailable(this.#parts.redis.del(...keys)) : 0;
  }

  #readId(request: Request): string | undefined {
    const [id, ...others] = this.#readIds(request);
    return others.length > 0 ? undefined : id;
  }

  #readIds(request: Request): string[] {
    const { name } = cookieOf(this.#parts.isSecure(request));
    const pairs = (request.headers.cookie ?? "").split(";").map((pair) => pair.trim());
    const own = pairs.filter((pair) => pair.startsWith(`${name}=`));
    return own.map((pair) => pair.slice(name.length + 1)).filter((id) => idForm.test(id));
  }

  #setCookie(request: Request, response: Response, id: string | undefined): void {
    const secure = this.#parts.isSecure(request);
    const { name, path } = cookieOf(secure);
    const attributes = { path, httpOnly: true, sameSite: "strict", secure } as const;
    if (id) response.cookie(name, id, attributes);
    else response.clearCookie(name, attributes);
  }

  #parse(idHash: string, record: string | null): Session | undefined {
    if (!record) return undefined;
    const { tokenHash, endsAtMs } = sessionRecord.parse(JSON.parse(record));
    const leftMs = endsAtMs - this.#parts.clock.nowMs();
    return 0 < leftMs && leftMs <= lifetimeMs + clockErrorMsMax ? { idHash, tokenHash, endsAtMs } : undefined;
  }
}

export interface SignedIn {
  session: Session;
  caller: Caller;
}

/**
 * Reads the session of a request and its caller, or `unauthenticated` if the browser is not signed in, or not for this page. Closes
 * a session whose token is no longer valid or opens no page; with `idle` presence only at the next page view, which needs the
 * cookie to say that the session has ended.
 */
export async function readSignedIn(
  sessions: Sessions,
  request: Request,
  response: Response,
  { access = "account", presence = "active" }: { access?: Access; presence?: Presence } = {},
): Promise<SignedIn | CallerError> {
  const session = await sessions.read(request, presence);
  if (!session) return new CallerError("unauthenticated");
  const caller = await sessions.callerOf(session, response, access);
  if (caller instanceof CallerError) {
    if (presence === "active" && caller.details.reason !== "only_searches") await sessions.close(request, response);
    return caller;
  }
  return { session, caller };
}

/** @throws {CallerError} `unauthenticated` if the browser is not signed in, with a reason if its token may not see this. */
export async function requireSession(
  sessions: Sessions,
  request: Request,
  response: Response,
  access: Access,
): Promise<SignedIn> {
  const signedIn = await readSignedIn(sessions, request, response, { access });
  if (signedIn instanceof CallerError) throw signedIn;
  return signedIn;
}
