import type { IncomingMessage } from "node:http";
import express, { type Request, type Response } from "express";
import { CallerError } from "../../shared/errors.ts";

const bodyBytesMax = 16 * 1024;

const readBytes = express.raw({ type: () => true, limit: bodyBytesMax });
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads the body of a request as JSON. Bytes that are not UTF-8 are refused, not repaired; a byte order mark is allowed.
 * Of a key that stands twice in an object the last one counts, as everywhere in JavaScript.
 * @throws {CallerError} `bad_request` with `details.reason` telling which of this failed.
 */
export async function readJson(request: Request, response: Response): Promise<unknown> {
  requireJson(request);
  const bytes = await read(request, response);
  if (bytes.length === 0) throw refused("body_missing");
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw refused("body_not_utf8");
  }
  try {
    return JSON.parse(text);
  } catch {
    throw refused("body_not_json");
  }
}

function requireJson(request: IncomingMessage): void {
  const [type = "", ...parameters] = (request.headers["content-type"] ?? "").split(";").map((part) => part.trim());
  if (type.toLowerCase() !== "application/json") throw refused("content_type_not_json");
  for (const parameter of parameters) {
    const [name, value = ""] = parameter.toLowerCase().split("=");
    if (name === "charset" && !/^"?utf-8"?$/.test(value)) throw refused("charset_not_utf8");
  }
}

function read(request: Request, response: Response): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    readBytes(request, response, (error?: unknown) => {
      if (error) reject(refused(reasonOf(error)));
      else resolve(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
    });
  });
}

/** body-parser names what went wrong in `type`; a decompression error has none. */
function reasonOf(error: unknown): string {
  const type = error instanceof Error && "type" in error ? error.type : undefined;
  if (type === "entity.too.large") return "body_too_large";
  if (type === "encoding.unsupported") return "content_encoding_unsupported";
  if (type === "request.aborted" || type === "request.size.invalid") return "body_incomplete";
  return "body_unreadable";
}

const refused = (reason: string) => new CallerError("bad_request", { reason });
