import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../http/static-file.ts";

/** The interactive API reference at /docs: Swagger UI from its npm package, inside a page of our own. */

const read = (address: string) => readFileSync(new URL(address, import.meta.url));

const css = "text/css; charset=utf-8";
const script = "text/javascript; charset=utf-8";

/**
 * Allows only our own files and calls to this API. Swagger UI needs `data:` for its icons; it sets styles through the DOM,
 * which `style-src` does not restrict.
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

/** Security headers of all files under /docs. */
export const docsHeaders = {
  "Content-Security-Policy": policy,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  "Referrer-Policy": "no-referrer",
  "X-Frame-Options": "DENY",
};

/** Reads the files of /docs: the page, which refers to the others by versioned addresses, and the others. */
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
