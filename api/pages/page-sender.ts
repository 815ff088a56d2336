import type { Request, Response } from "express";
import { requestScopeOf } from "../http/request-scope.ts";
import type { Html } from "./html.ts";
import { htmlDocument } from "./html-document.ts";
import type { PageFiles } from "./page-files.ts";

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

export interface Page {
  status: number;
  title: string;
  body: Html;
  /** The browser loads the billing page after this time. */
  reloadAfterSeconds?: number | undefined;
}

/** Sends pages with the headers that limit what a browser may do with them. */
export class PageSender {
  readonly #files: PageFiles;
  readonly #securityPolicy: string;

  /** @param parts.checkoutOrigin where a form may lead to besides this service; undefined without payments. */
  constructor(parts: {
    files: PageFiles;
    checkoutOrigin: string | undefined;
  }) {
    this.#files = parts.files;
    this.#securityPolicy = securityPolicyOf(parts.checkoutOrigin);
  }

  send(request: Request, response: Response, { status, title, body, reloadAfterSeconds }: Page): void {
    this.setHeaders(response);
    if (reloadAfterSeconds !== undefined) response.setHeader("Refresh", `${reloadAfterSeconds}; url=/billing`);
    // The rest of an unread body would be taken for the next request, so the connection ends with this answer.
    if (!request.complete || requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
    const bytes = Buffer.from(htmlDocument(this.#files, title, body));
    response.statusCode = status;
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.setHeader("Content-Length", bytes.length);
    response.end(bytes);
  }

  /** Sets the security headers that pages have beyond those of every answer; alone for the stream and the CSV. */
  setHeaders(response: Response): void {
    response.setHeader("Content-Security-Policy", this.#securityPolicy);
    // Other sites get no referrer. "no-referrer" would also blank the Origin of our own forms, which the CSRF check reads.
    response.setHeader("Referrer-Policy", "same-origin");
    response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
    response.setHeader("Cross-Origin-Resource-Policy", "same-origin");
    response.setHeader("Permissions-Policy", disabledFeatures.map((feature) => `${feature}=()`).join(", "));
  }
}

/** The browser may load our own files and send forms to us, and nothing else. */
function securityPolicyOf(checkoutOrigin: string | undefined): string {
  // Browsers apply form-action to the redirect after a form too, so it has to allow the payment page.
  const formTargets = checkoutOrigin === undefined ? "'self'" : `'self' ${checkoutOrigin}`;
  return [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    `form-action ${formTargets}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join("; ");
}
