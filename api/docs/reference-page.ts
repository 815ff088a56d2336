import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../http/static-file.ts";

/** The reference to read and try: Swagger UI from its npm package, and a page of ours around it. */

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

/** What the browser may do with what is in /docs. */
export const docsHeaders = {
  "Content-Security-Policy": policy,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

/** Reads the files of /docs: the page itself, which names the others with their version, and those. */
export function readPage(): StaticFile[] {
  const files = [
    staticFile("/docs/swagger-ui.css", css, read(import.meta.resolve("swagger-ui-dist/swagger-ui.css"))),
    staticFile("/docs/swagger-ui-bundle.js", script, read(import.meta.resolve("swagger-ui-dist/swagger-ui-bundle.js"))),
    staticFile("/docs/page.css", css, read("page.css")),
    staticFile("/docs/page.js", script, read("page.js")),
  ];
  const html = files.reduce(
    (text, { path, address }) => text.replaceAll(`"${path}"`, `"${address}"`),
    read("page.html").toString(),
  );
  return [staticFile("/docs", "text/html; charset=utf-8", Buffer.from(html)), ...files];
}
