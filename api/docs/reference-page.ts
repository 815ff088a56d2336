import { readFileSync } from "node:fs";
import type { Request, Response } from "express";
import { z } from "zod";
import { brand, siteLinks, siteStyle } from "../brand/brand.ts";
import { CallerError } from "../../shared/errors.ts";
import { pageHeaders } from "../http/page-headers.ts";
import { serveFile, type StaticFile, staticFile } from "../http/static-file.ts";
import { html } from "../pages/html.ts";
import { htmlDocument } from "../pages/page-sender.ts";

/** The interactive API reference at /docs: Scalar from its npm package, inside a page of our own. */

const read = (address: string) => readFileSync(new URL(address, import.meta.url));

const css = "text/css; charset=utf-8";
const script = "text/javascript; charset=utf-8";

/**
 * Of all files under /docs. Scalar brings its style sheet inside its script and draws with style attributes, hence
 * `unsafe-inline` for styles: these can load nothing from elsewhere.
 */
const headers = {
  ...pageHeaders({ "style-src": "'self' 'unsafe-inline'", "img-src": "'self' data:" }),
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  "Referrer-Policy": "no-referrer",
  "X-Frame-Options": "DENY",
};

/**
 * Scalar's program for browsers. The package has it as one string literal in a module for a server that we do not run. The
 * literal is read as JSON, in which control characters are escaped: loading the module would take a third of a second of each
 * start.
 */
function readScalar(): Buffer {
  const module = read(import.meta.resolve("@scalar/fastify-api-reference")).toString();
  const [, text] = /^var standalone_default = (".*");$/m.exec(module) ?? [];
  if (text === undefined) throw new Error("this version of @scalar/fastify-api-reference keeps Scalar elsewhere");
  return Buffer.from(z.string().parse(JSON.parse(text.replace(/\p{Cc}/gu, escaped))));
}

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

export const referencePaths = ["/docs", "/docs/scalar.js", "/docs/page.css", "/docs/page.js"] as const;

/**
 * Serves the files at `referencePaths`. They are read on the first visit, in 40 ms: with what reading Scalar leaves behind they
 * take 20 MB, which an API that is never read by people does not need.
 */
export function serveReference(): (request: Request, response: Response) => Promise<void> {
  let files: Map<string, ReturnType<typeof serveFile>> | undefined;
  return async (request, response) => {
    files ??= new Map(readPage().map((file) => [file.path, serveFile(file, headers)]));
    const serve = files.get(request.path);
    if (serve === undefined) throw new CallerError("not_found");
    await serve(request, response);
  };
}

/** Reads the files of /docs: the page, which refers to the others by versioned addresses, and the others. */
function readPage(): StaticFile[] {
  const scalar = staticFile("/docs/scalar.js", script, readScalar());
  const style = staticFile("/docs/page.css", css, Buffer.concat([read("page.css"), siteStyle()]));
  const program = staticFile("/docs/page.js", script, read("page.js"));
  const files = { icon: brand.mark, font: brand.font, styles: [style], scripts: [scalar, program] };
  const body = html`${siteLinks("/docs")}
<noscript>This page needs JavaScript. The document behind it is <a href="/openapi.json">/openapi.json</a>.</noscript>
<div id="reference"></div>`;
  const page = Buffer.from(htmlDocument(files, { title: "API reference", body, isIndexed: true }));
  return [staticFile("/docs", "text/html; charset=utf-8", page), scalar, style, program];
}
