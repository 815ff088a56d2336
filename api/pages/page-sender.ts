import type { Request, Response } from "express";
import { pageHeaders } from "../http/page-headers.ts";
import { requestScopeOf } from "../http/request-scope.ts";
import type { StaticFile } from "../http/static-file.ts";
import { type Html, html } from "./html.ts";

const disabledFeatures = [
  "accelerometer",
  "camera",
  "display-capture",
  "geolocation",
  "gyroscope",
  "microphone",
  "payment",
  "usb",
];

interface Page {
  status: number;
  title: string;
  body: Html;
  /** The header `Refresh`: after how many seconds the browser loads the page again, or another one. */
  refresh?: string | undefined;
}

/** Sends pages with the headers that limit what a browser may do with them. */
export class PageSender {
  readonly #files: PageFiles;
  readonly #headers: readonly (readonly [string, string])[];

  /** @param parts.checkoutOrigin the other origin that a form may lead to; undefined without payments. */
  constructor(parts: { files: PageFiles; checkoutOrigin: string | undefined }) {
    this.#files = parts.files;
    // Browsers also apply form-action to the redirect after a form, so it must allow the payment page.
    const formTargets = parts.checkoutOrigin === undefined ? "'self'" : `'self' ${parts.checkoutOrigin}`;
    this.#headers = Object.entries({
      ...pageHeaders({ "form-action": formTargets }),
      // Other sites get no referrer. "no-referrer" would also remove the Origin of our own forms, which the CSRF check reads.
      "Referrer-Policy": "same-origin",
      "Permissions-Policy": disabledFeatures.map((feature) => `${feature}=()`).join(", "),
    });
  }

  send(request: Request, response: Response, { status, title, body, refresh }: Page): void {
    this.setHeaders(response);
    if (refresh !== undefined) response.setHeader("Refresh", refresh);
    // The rest of an unread body would be read as the next request, so the connection ends with this answer.
    if (!request.complete || requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
    const bytes = Buffer.from(htmlDocument(this.#files, { title, body }));
    response.statusCode = status;
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.setHeader("Content-Length", bytes.length);
    response.end(bytes);
  }

  /** Sets the security headers that pages, streams and CSV files have besides those of every answer. */
  setHeaders(response: Response): void {
    for (const [name, value] of this.#headers) response.setHeader(name, value);
  }
}

/** The files that a page loads, in order. */
interface PageFiles {
  icon: StaticFile;
  font: StaticFile;
  styles: readonly StaticFile[];
  scripts: readonly StaticFile[];
}

/** Headers of the files of pages: no other site may load them. */
export const pageFileHeaders = { "Cross-Origin-Resource-Policy": "same-origin" };

/** @param page.isIndexed whether search engines may list the page. */
export function htmlDocument(
  { icon, font, styles, scripts }: PageFiles,
  { title, body, isIndexed = false }: Pick<Page, "title" | "body"> & { isIndexed?: boolean },
): string {
  return `<!doctype html>\n${html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${!isIndexed && html`<meta name="robots" content="noindex">`}
<title>${title} · Serpmill</title>
<link rel="icon" href="${icon.address}" type="image/svg+xml">
<link rel="preload" href="${font.address}" as="font" type="font/woff2" crossorigin>
${styles.map(
  ({ address }) => html`<link rel="stylesheet" href="${address}">
`,
)}${scripts.map(
  ({ address }) => html`<script src="${address}" defer></script>
`,
)}</head>
<body>
${body}
</body>
</html>
`.toString()}`;
}
