import { createHash, randomBytes } from "node:crypto";
import { parseCookie } from "cookie";
import type { Request, Response } from "express";
import { z } from "zod";
import { CallerError } from "../../../shared/errors.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import type { ApiContext } from "../../context.ts";
import { unavailable } from "../../errors.ts";

/**
 * Who is signed in. The browser has a random id in a cookie; Redis has, under the id's hash, the hash of the token that
 * signed in. So neither of them has anything that could be used elsewhere, and a session is worth what its token is worth
 * now: it ends with it.
 */

const idBytes = 32;
const idForm = /^[\w-]{43}$/;
const idleSeconds = 30 * 60;
const wholeMs = 12 * 3_600_000;

const kept = z.object({ tokenHash: z.string().regex(/^[0-9a-f]{64}$/), endsAtMs: z.number() });

/** A browser that is signed in. */
export interface Session {
  /** Hash of the id; what this process may remember it by. */
  idHash: string;
  tokenHash: string;
}

/** Whether a person did something, or only their open page. */
export type Presence = "active" | "idle";

const keyOf = (idHash: string) => `session:${idHash}`;
const hashId = (id: string) => createHash("sha256").update(id).digest("hex");

/** Whether the browser came by https: then its cookie never travels by anything else. */
export function isHttps({ config }: ApiContext, request: Request): boolean {
  return request.secure || (config.PUBLIC_URL?.startsWith("https:") ?? false);
}

// __Host- would be stricter, but wants the whole origin as its path: this one is sent to the page alone.
const cookieName = (https: boolean) => (https ? "__Secure-billing" : "billing");

/** Signs a browser in, under a new id whatever it had before. */
export async function openSession(context: ApiContext, request: Request, response: Response, tokenHash: string) {
  await destroy(context, request);
  const id = randomBytes(idBytes).toString("base64url");
  const value = JSON.stringify({ tokenHash, endsAtMs: Math.round(context.clock.nowMs()) + wholeMs });
  await orUnavailable(context.redis.set(keyOf(hashId(id)), value, "EX", idleSeconds));
  setCookie(context, request, response, id);
}

/** Signs a browser out: the id is worth nothing from now on, whoever has it. */
export async function closeSession(context: ApiContext, request: Request, response: Response): Promise<void> {
  await destroy(context, request);
  setCookie(context, request, response, undefined);
}

async function destroy(context: ApiContext, request: Request): Promise<void> {
  const id = readId(context, request);
  if (id) await orUnavailable(context.redis.del(keyOf(hashId(id))));
}

/** The session of a request. Where the person is `active`, the time for which a session may be idle begins anew. */
export async function readSession(
  context: ApiContext,
  request: Request,
  presence: Presence,
): Promise<Session | undefined> {
  const id = readId(context, request);
  if (!id) return undefined;
  const key = keyOf(hashId(id));
  const { redis } = context;
  const text = await orUnavailable(presence === "active" ? redis.getex(key, "EX", idleSeconds) : redis.get(key));
  return parse(context, hashId(id), text);
}

/** Whether a session still is one; asking is no activity of the person in front of it. */
export async function isOpen(context: ApiContext, { idHash }: Session): Promise<boolean> {
  return parse(context, idHash, await orUnavailable(context.redis.get(keyOf(idHash)))) !== undefined;
}

/** Whom a session, or a token about to open one, speaks for; undefined where the token is unknown, expired or revoked. */
export async function callerOf(
  { findByTokenHash }: ApiContext,
  { tokenHash }: Pick<Session, "tokenHash">,
): Promise<Caller | undefined> {
  try {
    return await findByTokenHash(tokenHash);
  } catch (error) {
    if (error instanceof CallerError && error.code === "unauthenticated") return undefined;
    throw error;
  }
}

export const hasCookie = (context: ApiContext, request: Request) => readId(context, request) !== undefined;

function readId(context: ApiContext, request: Request): string | undefined {
  const id = parseCookie(request.headers.cookie ?? "")[cookieName(isHttps(context, request))];
  return id && idForm.test(id) ? id : undefined;
}

function setCookie(context: ApiContext, request: Request, response: Response, id: string | undefined): void {
  const https = isHttps(context, request);
  const terms = { path: "/billing", httpOnly: true, sameSite: "strict", secure: https } as const;
  if (id) response.cookie(cookieName(https), id, terms);
  else response.clearCookie(cookieName(https), terms);
}

function parse(context: ApiContext, idHash: string, text: string | null): Session | undefined {
  if (!text) return undefined;
  const { tokenHash, endsAtMs } = kept.parse(JSON.parse(text));
  return context.clock.nowMs() < endsAtMs ? { idHash, tokenHash } : undefined;
}

const orUnavailable = <T>(asked: Promise<T>): Promise<T> =>
  asked.catch(() => {
    throw unavailable("redis_unreachable");
  });
