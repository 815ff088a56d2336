import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import {
  localhostAllowedHostnames,
  ProtocolErrorCode,
  validateHostHeader,
  validateOriginHeader,
} from "@modelcontextprotocol/server";
import type { Request, Response } from "express";
import { z } from "zod";
import { CallerError, errors } from "../../shared/errors.ts";
import { recordError } from "../errors.ts";
import { readJson } from "../http/read-json.ts";
import { type ErrorForm, requestScopeOf } from "../http/request-scope.ts";
import { sendJson } from "../http/send-json.ts";
import type { Config } from "../../shared/config.ts";

// The first of the codes that JSON-RPC leaves to implementations.
const serverErrorCode = -32_000;
/** Several times as many as a search with every field has. The SDK describes each wrong part in its error. */
const partsMax = 200;

/** Reads the body as JSON, within the same limits as REST. @returns undefined if it was rejected and answered. */
export async function readMessage(request: Request, response: Response): Promise<unknown> {
  let sent: unknown;
  try {
    sent = await readJson(request);
  } catch (error) {
    if (!(error instanceof CallerError)) throw error;
    return rejectUnreadable(request, response, error);
  }
  const invalid = { status: 400, code: ProtocolErrorCode.InvalidRequest };
  if (Array.isArray(sent)) {
    const message = "Batches are not supported; send each message in a separate request.";
    return reject(request, response, { ...invalid, message, reason: "batch_not_supported" });
  }
  if (hasTooManyParts(sent)) {
    const message = `The message has more than ${partsMax} objects, lists and values.`;
    return reject(request, response, { ...invalid, message, reason: "too_many_parts" });
  }
  return sent;
}

function hasTooManyParts(message: unknown): boolean {
  const parts = [message];
  for (const part of parts) {
    if (typeof part === "object" && part !== null) parts.push(...Object.values(part));
    if (parts.length > partsMax) return true;
  }
  return false;
}

const methodMessage = z.object({ method: z.string().regex(/^[a-z]{1,20}(\/[a-z_]{1,20}){0,2}$/i) });

/** A message's method for the log. Anything that does not look like a method is `other`: the caller's text is not logged. */
export const methodOf = (message: unknown): string => methodMessage.safeParse(message).data?.method ?? "other";

export function rejectForeignHost(request: Request, response: Response, reason: ForeignReason): void {
  const message = "Host or Origin is not allowed; the operator can add it to PUBLIC_URL or MCP_ALLOWED_HOSTS.";
  reject(request, response, { status: 403, code: serverErrorCode, message, reason });
}

const statusOf: Record<string, number> = {
  json_not_accepted: 406,
  body_too_large: 413,
  content_type_not_json: 415,
  charset_not_utf8: 415,
  content_encoding_unsupported: 415,
};

function rejectUnreadable(request: Request, response: Response, error: CallerError): void {
  const reason = String(error.details.reason);
  const status = statusOf[reason] ?? 400;
  const code = status === 400 ? ProtocolErrorCode.ParseError : serverErrorCode;
  reject(request, response, { status, code, message: error.message, reason });
}

const withId = z.object({ id: z.union([z.string(), z.number()]) });

/** Rejects `subscriptions/listen`: the SDK would open a stream, and there are no changes to report. */
export function rejectListening(request: Request, response: Response, message: unknown): void {
  const { data } = withId.safeParse(message);
  const error = { code: ProtocolErrorCode.MethodNotFound, message: "Method not found" };
  sendJson(request, response, 404, JSON.stringify({ jsonrpc: "2.0", id: data?.id ?? null, error }));
}

/**
 * An error that is thrown at the endpoint, such as a missing token. Some clients show no body but a JSON-RPC error. It
 * has no id, because most of these errors come before the message is read.
 */
export const jsonRpcForm: ErrorForm = ({ code, message, details }, requestId) => ({
  status: errors[code].status,
  body: errorMessage({ code: serverErrorCode, message, data: { requestId, code, details } }),
});

const errorMessage = (error: { code: number; message: string; data: object }) => ({ jsonrpc: "2.0", id: null, error });

/** Answers with a JSON-RPC error without an id, as the protocol requires where no message could be read. */
function reject(
  request: Request,
  response: Response,
  { status, code, message, reason }: { status: number; code: number; message: string; reason: string },
): void {
  recordError(response, new CallerError("bad_request", { reason }));
  const { requestId } = requestScopeOf(response);
  sendJson(request, response, status, JSON.stringify(errorMessage({ code, message, data: { requestId, reason } })));
}

type ForeignReason = "host_not_allowed" | "origin_not_allowed";

type HostConfig = Pick<Config, "HOST" | "PUBLIC_URL" | "MCP_ALLOWED_HOSTS">;

/**
 * Protects against DNS rebinding: a web page that points its own host name at this server, on its visitor's machine or
 * network, sends that name as Host or Origin. An IP address cannot be rebound, and only browsers send Origin.
 * @returns a function that returns why a request is rejected, or undefined.
 */
export function openHostCheck(config: HostConfig): (request: IncomingMessage) => ForeignReason | undefined {
  const allowed = [...localhostAllowedHostnames(), config.HOST, ...config.MCP_ALLOWED_HOSTS];
  if (config.PUBLIC_URL !== undefined) allowed.push(new URL(config.PUBLIC_URL).hostname);

  return ({ headers }) => {
    const host = validateHostHeader(headers.host, allowed);
    const hostname = host.ok ? host.hostname : (host.hostname ?? "");
    if (!host.ok && !isAddress(hostname)) return "host_not_allowed";
    return validateOriginHeader(headers.origin, [...allowed, hostname]).ok ? undefined : "origin_not_allowed";
  };
}

// A host name that is an IPv6 address has brackets.
const isAddress = (hostname: string) => isIP(hostname.replace(/^\[(.*)\]$/, "$1")) !== 0;

const noOAuth =
  "There is no sign-in by OAuth. The token in the header `Authorization: Bearer smk_…` is missing, unknown, expired or revoked.";

/**
 * POST /register: where a client whose token was refused looks for a sign-in by OAuth, by the default of the protocol. It shows
 * its user this answer in place of the 401, so the answer is about the token, in the form of OAuth (RFC 7591, section 3.2.2).
 */
export function rejectOAuth(request: Request, response: Response): void {
  recordError(response, new CallerError("not_found"));
  sendJson(request, response, 404, JSON.stringify({ error: "access_denied", error_description: noOAuth }));
}
