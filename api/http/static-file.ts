import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Request, Response } from "express";

/** A file for browsers. */
export interface StaticFile {
  path: string;
  type: string;
  bytes: Buffer;
  version: string;
  /** The path with the version. A browser may cache this address for ever. */
  address: string;
}

/** Versions a file by a hash of its content. */
export function staticFile(path: string, type: string, bytes: Buffer): StaticFile {
  const version = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return { path, type, bytes, version, address: `${path}?v=${version}` };
}

/**
 * Serves a file, with gzip if the browser accepts it. The first such request compresses the file for all. During a rolling
 * update a page may request its files from a process of another version: it gets that version's file and may not cache it.
 */
export function serveFile({ type, bytes, version }: StaticFile, headers: Record<string, string>) {
  let compressed: Promise<Buffer> | undefined;
  return async (request: Request, response: Response) => {
    const isVersioned = request.query["v"] === version;
    response.set(headers).set({
      "Content-Type": type,
      "Cache-Control": isVersioned ? "public, max-age=31536000, immutable" : "no-cache",
      Vary: "Accept-Encoding",
    });
    if (request.acceptsEncodings("gzip")) {
      compressed ??= promisify(gzip)(bytes);
      response.set("Content-Encoding", "gzip").end(await compressed);
    } else response.end(bytes);
  };
}
