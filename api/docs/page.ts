import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Request, Response } from "express";

/** The reference to read and try: Swagger UI from its npm package, and a page of ours around it. */

/** One file that the page is made of, the page itself among them. */
export interface PageFile {
  path: string;
  type: string;
  bytes: Buffer;
  /** What an address has to name as `v` for its bytes to be the same for ever; none for the page itself. */
  version: string | undefined;
}

const read = (address: string) => readFileSync(new URL(address, import.meta.url));

const css = "text/css; charset=utf-8";
const script = "text/javascript; charset=utf-8";

/**
 * Nothing but our own files and the API itself. Swagger UI draws its icons from `data:` addresses; it sets styles only
 * through the object model, which is no inline style.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const secure = {
  "Content-Security-Policy": policy,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

/** Reads the files of /docs. The page names the others with their version, so that they can be kept for ever. */
export function openPage(): PageFile[] {
  const files = [
    { path: "/docs/swagger-ui.css", type: css, bytes: read(import.meta.resolve("swagger-ui-dist/swagger-ui.css")) },
    {
      path: "/docs/swagger-ui-bundle.js",
      type: script,
      bytes: read(import.meta.resolve("swagger-ui-dist/swagger-ui-bundle.js")),
    },
    { path: "/docs/page.css", type: css, bytes: read("page.css") },
    { path: "/docs/page.js", type: script, bytes: read("page.js") },
  ].map((file) => ({ ...file, version: createHash("sha256").update(file.bytes).digest("hex").slice(0, 16) }));
  const html = files.reduce(
    (text, { path, version }) => text.replaceAll(`"${path}"`, `"${path}?v=${version}"`),
    read("page.html").toString(),
  );
  const page = { path: "/docs", type: "text/html; charset=utf-8", bytes: Buffer.from(html), version: undefined };
  return [page, ...files];
}

/** Answers with a file, packed where the browser takes it: that is a third of the bytes. */
export function answerFile({ type, bytes, version }: PageFile) {
  const packing = promisify(gzip)(bytes);
  return async (request: Request, response: Response) => {
    const isKept = version !== undefined && request.query["v"] === version;
    response.set(secure).set({
      "Content-Type": type,
      "Cache-Control": isKept ? "public, max-age=31536000, immutable" : "no-cache",
      Vary: "Accept-Encoding",
    });
    if (request.acceptsEncodings("gzip")) response.set("Content-Encoding", "gzip").end(await packing);
    else response.end(bytes);
  };
}
