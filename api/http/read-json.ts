import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { Request } from "express";
import { CallerError } from "../../shared/errors.ts";

const bodyBytesMax = 16 * 1024;

type Unpack = (packed: Buffer, bounds: { maxOutputLength: number }) => Promise<Buffer>;

const unpacks = new Map<string, Unpack>([
  ["identity", async (plain) => plain],
  ["gzip", promisify(gunzip)],
  ["deflate", promisify(inflate)],
  ["br", promisify(brotliDecompress)],
]);
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads the body of a request as JSON. Bytes that are not UTF-8 are refused, not repaired; a byte order mark is allowed.
 * Of a key that stands twice in an object the last one counts, as everywhere in JavaScript.
 * @throws {CallerError} `bad_request` with `details.reason` telling which of this failed.
 */
export async function readJson(request: Request): Promise<unknown> {
  requireJson(request);
  const unpack = unpacks.get((request.headers["content-encoding"] ?? "identity").toLowerCase());
  if (!unpack) throw refused("content_encoding_unsupported");
  const bytes = await unpacked(unpack, await readBytes(request, bodyBytesMax));
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

function requireJson(request: Request): void {
  if (!request.accepts("application/json")) throw refused("json_not_accepted");
  const [type = "", ...parameters] = (request.headers["content-type"] ?? "").split(";").map((part) => part.trim());
  if (type.toLowerCase() !== "application/json") throw refused("content_type_not_json");
  for (const parameter of parameters) {
    const [name, value = ""] = parameter.toLowerCase().split("=");
    if (name === "charset" && !/^"?utf-8"?$/.test(value)) throw refused("charset_not_utf8");
  }
}

/**
 * The body as it came. What is too large is refused at once, and not waited for: body-parser would read all of it before it
 * says so. @throws {CallerError} `bad_request` with `details.reason`.
 */
export function readBytes(request: Request, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers["content-length"] ?? 0) > bytesMax) return reject(refused("body_too_large"));
    const chunks: Buffer[] = [];
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= bytesMax) {
        chunks.push(chunk);
      } else {
        // The connection lives on: the refusal goes out on it.
        request.removeAllListeners("data").pause();
        reject(refused("body_too_large"));
      }
    });
    request.once("end", () => resolve(Buffer.concat(chunks)));
    const cutOff = () => void (request.complete || reject(refused("body_incomplete")));
    request.once("error", cutOff);
    request.once("close", cutOff);
  });
}

async function unpacked(unpack: Unpack, bytes: Buffer): Promise<Buffer> {
  try {
    return await unpack(bytes, { maxOutputLength: bodyBytesMax });
  } catch (error) {
    const isTooLarge = error instanceof RangeError && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
    throw refused(isTooLarge ? "body_too_large" : "body_unreadable");
  }
}

const refused = (reason: string) => new CallerError("bad_request", { reason });
