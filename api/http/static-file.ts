import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Request, Response } from "express";

/** A file that browsers load. */
export interface StaticFile {
  path: string;
  type: string;
  bytes: Buffer;
  version: string;
  /** The path with the version, under which a browser may keep the file for good. */
  address: string;
}

/** Names a file with a hash of what is in it. */
export function staticFile(path: string, type: string, bytes: Buffer): StaticFile {
  const version = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return { path, type, bytes, version, address: `${path}?v=${version}` };
}

/**
 * Answers with a file, packed where the browser takes it: that is a third of the bytes. Where an update is under way, a page
 * of one version may ask another one for its files: it gets those that there are, and does not keep them.
 */
export function serveFile({ type, bytes, version }: StaticFile, headers: Record<string, string>) {
  const packing = promisify(gzip)(bytes);
  return async (request: Request, response: Response) => {
    const isKept = request.query["v"] === version;
    response.set(headers).set({
      "Content-Type": type,
      "Cache-Control": isKept ? "public, max-age=31536000, immutable" : "no-cache",
      Vary: "Accept-Encoding",
    });
    if (request.acceptsEncodings("gzip")) response.set("Content-Encoding", "gzip").end(await packing);
    else response.end(bytes);
  };
}
