import type { Request, Response } from "express";
import { requestScopeOf } from "../http/request-scope.ts";
import type { Billing } from "./billing.ts";
import { html, type Html } from "./views/html.ts";
import { isHttps } from "./session/sessions.ts";

const hstsSeconds = 365 * 24 * 3_600;
const features = [
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
  /** The page asks for itself again after these seconds. */
  againAfterSeconds?: number | undefined;
}

/** Answers with a page. */
export function sendPage(billing: Billing, request: Request, response: Response, page: Page): void {
  setPageHeaders(billing, request, response);
  if (page.againAfterSeconds !== undefined) response.setHeader("Refresh", `${page.againAfterSeconds}; url=/billing`);
  // What was not read of a request is not read any more: the connection ends with this answer.
  if (!request.complete || requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
  const bytes = Buffer.from(`<!doctype html>\n${whole(billing, page).toString()}`);
  response.statusCode = page.status;
  response.setHeader("Content-Type", "text/html; charset=utf-8");
  response.setHeader("Content-Length", bytes.length);
  response.end(bytes);
}

/** What the browser may do with what comes from this door: show it, load our own files, send forms to us, and no more. */
export function setPageHeaders({ context }: Billing, request: Request, response: Response): void {
  const { topups } = context;
  // Browsers hold redirects after a form to this list, too.
  const forms = topups ? `'self' ${topups.checkoutOrigin}` : "'self'";
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    `form-action ${forms}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ];
  response.setHeader("Content-Security-Policy", policy.join("; "));
  response.setHeader("X-Content-Type-Options", "nosniff");
  // Nobody else learns where one came from. "no-referrer" would also blank the Origin of our own forms, which is looked at.
  response.setHeader("Referrer-Policy", "same-origin");
  response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
  response.setHeader("Cross-Origin-Resource-Policy", "same-origin");
  response.setHeader("Permissions-Policy", features.map((feature) => `${feature}=()`).join(", "));
  if (isHttps(context, request)) response.setHeader("Strict-Transport-Security", `max-age=${hstsSeconds}`);
}

function whole({ assets }: Billing, { title, body }: Page): Html {
  return html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · Serpmill</title>
<link rel="icon" href="${assets.icon.address}" type="image/svg+xml">
<link rel="stylesheet" href="${assets.style.address}">
<script src="${assets.script.address}" defer></script>
</head>
<body>
${body}
</body>
</html>
`;
}
