import { promisify } from "node:util";
import { gunzip, inflate } from "node:zlib";
import type { Request } from "express";
import { CallerError } from "../../shared/errors.ts";

const bodyBytesMax = 16 * 1024;
/** A caller decides how small the chunks of its body are, and each one that is kept takes some 500 bytes more. */
const chunksMax = 64;

type Decompress = (bytes: Buffer, limits: { maxOutputLength: number }) => Promise<Buffer>;

/** Without `br`: its decoder makes 16 MiB of 50 bytes before it meets the limit, in 37 ms of CPU. That of gzip takes 0.1 ms. */
const decompressors = new Map<string, Decompress>([
  ["identity", async (bytes) => bytes],
  ["gzip", promisify(gunzip)],
  ["deflate", promisify(inflate)],
]);
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a request's body as JSON. Invalid UTF-8 is rejected, not repaired; a byte order mark is allowed. If an object has a
 * key twice, the last one counts, as always in JavaScript.
 * @throws {CallerError} `bad_request` with a `details.reason`.
 */
export async function readJson(request: Request): Promise<unknown> {
  requireJson(request);
  const decompress = decompressors.get((request.headers["content-encoding"] ?? "identity").toLowerCase());
  if (!decompress) throw badRequest("content_encoding_unsupported");
  const bytes = await decompressed(decompress, await readBytes(request, bodyBytesMax));
  if (bytes.length === 0) throw badRequest("body_missing");
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw badRequest("body_not_utf8");
  }
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest("body_not_json");
  }
}

function requireJson(request: Request): void {
  // The type of the answers: a range matches it with the charset and without.
  if (!request.accepts("application/json; charset=utf-8")) throw badRequest("json_not_accepted");
  const [type = "", ...parameters] = (request.headers["content-type"] ?? "").split(";").map((part) => part.trim());
  if (type.toLowerCase() !== "application/json") throw badRequest("content_type_not_json");
  for (const parameter of parameters) {
    const [name, value = ""] = parameter.toLowerCase().split("=");
    if (name === "charset" && !/^"?utf-8"?$/.test(value)) throw badRequest("charset_not_utf8");
  }
}

/**
 * Reads a request's body as it was sent. A body that is too large is rejected at once; body-parser would read all of it
 * first. @throws {CallerError} `bad_request` with a `details.reason`.
 */
export function readBytes(request: Request, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers["content-length"] ?? 0) > bytesMax) return reject(badRequest("body_too_large"));
    const chunks: Buffer[] = [];
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= bytesMax) {
        if (chunks.push(chunk) > chunksMax) chunks.splice(0, chunks.length, Buffer.concat(chunks));
      } else {
        // Keeps the connection open: the error is sent on it.
        request.removeAllListeners("data").pause();
        reject(badRequest("body_too_large"));
      }
    });
    request.once("end", () => resolve(Buffer.concat(chunks)));
    // No caller gets this: it has disconnected, or has the same from Node's parser.
    const onCutOff = () => void (request.complete || reject(badRequest("malformed_http")));
    request.once("error", onCutOff);
    request.once("close", onCutOff);
  });
}

async function decompressed(decompress: Decompress, bytes: Buffer): Promise<Buffer> {
  try {
    return await decompress(bytes, { maxOutputLength: bodyBytesMax });
  } catch (error) {
    const isTooLarge = error instanceof RangeError && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
    throw badRequest(isTooLarge ? "body_too_large" : "body_unreadable");
  }
}

const badRequest = (reason: string) => new CallerError("bad_request", { reason });
